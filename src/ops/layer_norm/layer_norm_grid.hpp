// layer_norm on a Grid, one group per row, and sums over rows; the formulas are those of layer_norm_cpu.cpp.
#pragma once

#include <cmath>
#include <memory>

#include "ops/element_grid.hpp"
#include "ops/elementwise.hpp"
#include "ops/rounded_sum.hpp"
#include "ops/rows.hpp"
#include "ops/rows_grid.hpp"

namespace lockstep::ops {

template <class T>
struct LayerNormFunctor {
  const T* x;
  const float *weight, *bias;  ///< bias may be null
  T* y;
  float *means, *rstds;  ///< null in inference
  std::int64_t size;
  float epsilon;
  template <class Group>
  LOCKSTEP_HOST_DEVICE void operator()(Group& group, std::int64_t row) const {
    const T* xr = x + row * size;
    const float *w = weight, *b = bias;
    T* yr = y + row * size;
    const auto n = static_cast<float>(size);
    const float mean = group.sum(size, [=](std::int64_t i) { return xr[i]; }) / n;
    const float squares = group.sum(size, [=](std::int64_t i) { return (xr[i] - mean) * (xr[i] - mean); });
    const float rstd = 1.0F / std::sqrt(squares / n + epsilon);
    const auto store = [=](std::int64_t i, float value) { yr[i] = value; };
    // Without a branch between loads, so that all of a lane's elements are waited for at once.
    if (b == nullptr) {
      group.each(
          size, [=](std::int64_t i) { return (xr[i] - mean) * rstd * w[i]; }, store);
    } else {
      group.each(
          size, [=](std::int64_t i) { return (xr[i] - mean) * rstd * w[i] + b[i]; }, store);
    }
    if (means == nullptr) return;
    float *saved_mean = means + row, *saved_rstd = rstds + row;
    group.once([=] {
      *saved_mean = mean;
      *saved_rstd = rstd;
    });
  }
};

template <class T>
struct LayerNormGradientFunctor {
  const T *x, *dy;
  const float *means, *rstds, *weight;
  const T* term;  ///< added to dx; null: nothing
  T* dx;          ///< may be any of these
  std::int64_t size;
  template <class Group>
  LOCKSTEP_HOST_DEVICE void operator()(Group& group, std::int64_t row) const {
    const T *xr = x + row * size, *dyr = dy + row * size;
    const float* w = weight;
    T* dxr = dx + row * size;
    const auto n = static_cast<float>(size);
    const float mean = means[row], rstd = rstds[row];
    const float mean_g = group.sum(size, [=](std::int64_t i) { return dyr[i] * w[i]; }) / n;
    const float mean_gz = group.sum(size, [=](std::int64_t i) { return dyr[i] * w[i] * ((xr[i] - mean) * rstd); }) / n;
    const auto gradient = [=](std::int64_t i) {
      const float z = (xr[i] - mean) * rstd;
      return rstd * (dyr[i] * w[i] - mean_g - z * mean_gz);
    };
    const auto store = [=](std::int64_t i, float value) { dxr[i] = value; };
    if (term == nullptr) {
      group.each(size, gradient, store);
    } else {
      const T* added = term + row * size;
      group.each(
          size, [=](std::int64_t i) { return rounded_sum(gradient(i), added[i]); }, store);
    }
  }
};

template <class Grid, class T>
class LayerNormGrid final : public Kernel {
 public:
  LayerNormGrid(Rows rows, double epsilon, bool bias)
      : rows_(rows), epsilon_(static_cast<float>(epsilon)), bias_(bias) {}

  [[nodiscard]] std::size_t workspace_bytes() const override {
    return device::row_sums_bytes<WeightAndBias>(rows_.count, rows_.size);
  }

  void forward(const ForwardCall& call) override {
    const bool save = !call.saved.empty();
    const auto* bias = bias_ ? static_cast<const float*>(call.parameters[1]) : nullptr;
    Grid::rows(stream_of(call), rows_.count,
               LayerNormFunctor<T>{input<T>(call), static_cast<const float*>(call.parameters[0]), bias, output<T>(call),
                                   save ? static_cast<float*>(call.saved[0]) : nullptr,
                                   save ? static_cast<float*>(call.saved[1]) : nullptr, rows_.size, epsilon_});
  }

  [[nodiscard]] bool can_recompute() const override { return true; }
  [[nodiscard]] bool adds_input_gradient() const override { return true; }
  void recompute(const ForwardCall& call) override { forward(call); }

  void backward(const BackwardCall& call) override {
    const auto* means = static_cast<const float*>(call.saved[0]);
    const auto* rstds = static_cast<const float*>(call.saved[1]);
    const T *x = input<T>(call), *dy = output_gradient<T>(call);
    const WeightAndBiasGradients gradients{call.parameter_gradients[0], bias_ ? call.parameter_gradients[1] : nullptr};
    if (gradients.weight != nullptr || gradients.bias != nullptr) {
      launch_weight_and_bias_sums<Grid>(stream_of(call), ScaleGradients<T>{x, dy, means, rstds, rows_.size},
                                        rows_.count, gradients, static_cast<WeightAndBias*>(call.workspace));
    }
    // Last, because it may overwrite x or dy.
    if (T* dx = input_gradient<T>(call); dx != nullptr) {
      const auto* weight = static_cast<const float*>(call.parameters[0]);
      Grid::rows(stream_of(call), rows_.count,
                 LayerNormGradientFunctor<T>{x, dy, means, rstds, weight,
                                             static_cast<const T*>(call.input_gradient_term), dx, rows_.size});
    }
  }

 private:
  Rows rows_;
  float epsilon_;
  bool bias_;
};

template <class Grid>
std::unique_ptr<Kernel> make_layer_norm_grid(const KernelRequest& request) {
  return make_for_elements(request, [&]<class T>(T /*element*/) {
    return std::make_unique<LayerNormGrid<Grid, T>>(Rows(request.inputs[0]), request.attributes->number("epsilon"),
                                                    request.parameters.size() > 1);
  });
}

}  // namespace lockstep::ops
