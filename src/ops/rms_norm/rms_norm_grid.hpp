// rms_norm on a Grid, one group per row, and a sum over rows; the formulas are those of rms_norm_cpu.cpp.
#pragma once

#include <cmath>
#include <memory>

#include "ops/element_grid.hpp"
#include "ops/elementwise.hpp"
#include "ops/rounded_sum.hpp"
#include "ops/rows.hpp"
#include "ops/rows_grid.hpp"

namespace lockstep::ops {

/// Where a row finds room in shared memory, it is read once, and in packs.
template <class T>
struct RmsNormFunctor {
  const T* x;
  const float* weight;
  T* y;
  float* saved;  ///< null in inference
  std::int64_t size;
  float epsilon;
  template <class Group>
  LOCKSTEP_HOST_DEVICE void operator()(Group& group, std::int64_t row) const {
    const T* xr = x + row * size;
    const float* w = weight;
    T* yr = y + row * size;
    const float r = scale(group, xr);
    group.each(
        size, [=](std::int64_t i) { return xr[i] * r * w[i]; }, [=](std::int64_t i, float value) { yr[i] = value; });
    save(group, row, r);
  }
  template <class Group>
  LOCKSTEP_HOST_DEVICE void operator()(Group& group, std::int64_t row, float* staged) const {
    const float* w = weight;
    group.stage(x + row * size, size, staged);
    group.barrier();
    const float r = scale(group, staged);
    const auto normalized = [=](std::int64_t i) {
      auto four = device::read_pack<4>(staged + i);
      const auto scales = device::read_pack<4>(w + i);
      LOCKSTEP_UNROLL
      for (int e = 0; e < 4; ++e) four.at[e] = four.at[e] * r * scales.at[e];
      return four;
    };
    group.write_packs(y + row * size, size, [=](std::int64_t i) { return device::rounded<T>(normalized(i)); });
    save(group, row, r);
  }

 private:
  template <class Group, class Row>
  LOCKSTEP_HOST_DEVICE float scale(Group& group, const Row* xr) const {
    const float mean = group.sum(size, [=](std::int64_t i) { return xr[i] * xr[i]; }) / static_cast<float>(size);
    return 1.0F / std::sqrt(mean + epsilon);
  }
  template <class Group>
  LOCKSTEP_HOST_DEVICE void save(Group& group, std::int64_t row, float r) const {
    if (saved == nullptr) return;
    float* to = saved + row;
    group.once([=] { *to = r; });
  }
};

template <class T>
struct RmsNormGradientFunctor {
  const T *x, *dy;
  const float *saved, *weight;
  const T* term;  ///< added to dx; null: nothing
  T* dx;          ///< may be any of these
  std::int64_t size;
  template <class Group>
  LOCKSTEP_HOST_DEVICE void operator()(Group& group, std::int64_t row) const {
    const T *xr = x + row * size, *dyr = dy + row * size;
    const float* w = weight;
    T* dxr = dx + row * size;
    const float r = saved[row];
    const float total = group.sum(size, [=](std::int64_t i) { return dyr[i] * w[i] * (xr[i] * r); });
    const float mean = total / size;
    const auto gradient = [=](std::int64_t i) { return r * (dyr[i] * w[i] - xr[i] * r * mean); };
    const auto store = [=](std::int64_t i, float value) { dxr[i] = value; };
    if (term == nullptr) {
      group.each(size, gradient, store);
    } else {
      const T* added = term + row * size;
      group.each(
          size, [=](std::int64_t i) { return rounded_sum(gradient(i), added[i]); }, store);
    }
  }
  template <class Group>
  LOCKSTEP_HOST_DEVICE void operator()(Group& group, std::int64_t row, float* staged) const {
    const float r = saved[row], *const xr = staged, *const gr = staged + size;
    group.stage(x + row * size, size, staged);
    group.stage_product(dy + row * size, weight, size, staged + size);
    group.barrier();
    const float mean = group.sum(size, [=](std::int64_t i) { return gr[i] * (xr[i] * r); }) / static_cast<float>(size);
    const auto gradient = [=](std::int64_t i) {
      auto four = device::read_pack<4>(xr + i);
      const auto g = device::read_pack<4>(gr + i);
      LOCKSTEP_UNROLL
      for (int e = 0; e < 4; ++e) four.at[e] = r * (g.at[e] - four.at[e] * r * mean);
      return four;
    };
    write_gradients<T>(group, dx + row * size, size, gradient, term == nullptr ? nullptr : term + row * size);
  }
};

template <class Grid, class T>
class RmsNormGrid final : public Kernel {
 public:
  RmsNormGrid(Rows rows, double epsilon) : rows_(rows), epsilon_(epsilon) {}

  std::size_t workspace_bytes() const override { return device::row_sums_bytes(rows_.count, rows_.size); }

  void forward(const ForwardCall& call) override {
    launch_rows<Grid>(
        stream_of(call), rows_, 1,
        RmsNormFunctor<T>{input<T>(call), static_cast<const float*>(call.parameters[0]), output<T>(call),
                          call.saved.empty() ? nullptr : static_cast<float*>(call.saved[0]), rows_.size, epsilon_});
  }

  bool can_recompute() const override { return true; }
  bool adds_input_gradient() const override { return true; }
  void recompute(const ForwardCall& call) override { forward(call); }

  void backward(const BackwardCall& call) override {
    const auto* saved = static_cast<const float*>(call.saved[0]);
    const T *x = input<T>(call), *dy = output_gradient<T>(call);
    if (T* dx = input_gradient<T>(call); dx != nullptr) {
      const auto* weight = static_cast<const float*>(call.parameters[0]);
      launch_rows<Grid>(stream_of(call), rows_, 2,
                        RmsNormGradientFunctor<T>{x, dy, saved, weight, static_cast<const T*>(call.input_gradient_term),
                                                  dx, rows_.size});
    }
    if (float* dw = call.parameter_gradients[0]; dw != nullptr) {
      launch_row_sums<Grid>(stream_of(call), ScaleGradients<T, false>{x, dy, nullptr, saved, rows_.size}, rows_.count,
                            rows_.size, dw, static_cast<float*>(call.workspace));
    }
  }

 private:
  Rows rows_;
  float epsilon_;
};

template <class Grid>
std::unique_ptr<Kernel> make_rms_norm_grid(const KernelRequest& request) {
  return make_for_elements(request, [&]<class T>(T /*element*/) {
    return std::make_unique<RmsNormGrid<Grid, T>>(Rows(request.inputs[0]), request.attributes->number("epsilon"));
  });
}

}  // namespace lockstep::ops
