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

/// store(i, value(i)) for the elements of a row that has just been read from its beginning: its end comes first,
/// because that is still in a warp's share of the cache.
template <class Group, class Value, class Store>
LOCKSTEP_HOST_DEVICE void each_from_end(Group& group, std::int64_t size, const Value& value, const Store& store) {
  const std::int64_t last = size - 1;
  group.each(
      size, [=](std::int64_t i) { return value(last - i); }, [=](std::int64_t i, float x) { store(last - i, x); });
}

struct RowMoments {
  float mean, rstd;
};
template <class Group, class T>
LOCKSTEP_HOST_DEVICE RowMoments row_moments(Group& group, const T* x, std::int64_t size, float epsilon) {
  const float n = size;
  const float mean = group.sum(size, [=](std::int64_t i) { return x[i]; }) / n;
  const float squares = group.sum(size, [=](std::int64_t i) { return (x[i] - mean) * (x[i] - mean); });
  return {mean, 1.0F / std::sqrt(squares / n + epsilon)};
}

/// Where a row finds room in shared memory, it is read once, and in packs.
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
    const RowMoments of_row = row_moments(group, xr, size, epsilon);
    const auto normalized = [=](std::int64_t i) { return (xr[i] - of_row.mean) * of_row.rstd * w[i]; };
    const auto store = [=](std::int64_t i, float value) { yr[i] = value; };
    // Without a branch between loads, so that all of a lane's elements are waited for at once.
    if (b == nullptr) {
      each_from_end(group, size, normalized, store);
    } else {
      each_from_end(
          group, size, [=](std::int64_t i) { return normalized(i) + b[i]; }, store);
    }
    save(group, row, of_row);
  }
  template <class Group>
  LOCKSTEP_HOST_DEVICE void operator()(Group& group, std::int64_t row, float* staged) const {
    const float *w = weight, *b = bias;
    group.stage(x + row * size, size, staged);
    group.barrier();
    const RowMoments of_row = row_moments(group, staged, size, epsilon);
    const auto normalized = [=](std::int64_t i) {
      auto four = device::read_pack<4>(staged + i);
      const auto scales = device::read_pack<4>(w + i);
      LOCKSTEP_UNROLL
      for (int e = 0; e < 4; ++e) four.at[e] = (four.at[e] - of_row.mean) * of_row.rstd * scales.at[e];
      return four;
    };
    T* yr = y + row * size;
    if (b == nullptr) {
      group.write_packs(yr, size, [=](std::int64_t i) { return device::rounded<T>(normalized(i)); });
    } else {
      group.write_packs(yr, size, [=](std::int64_t i) {
        auto four = normalized(i);
        const auto offsets = device::read_pack<4>(b + i);
        LOCKSTEP_UNROLL
        for (int e = 0; e < 4; ++e) four.at[e] += offsets.at[e];
        return device::rounded<T>(four);
      });
    }
    save(group, row, of_row);
  }

 private:
  template <class Group>
  LOCKSTEP_HOST_DEVICE void save(Group& group, std::int64_t row, const RowMoments& of_row) const {
    if (means == nullptr) return;
    float *saved_mean = means + row, *saved_rstd = rstds + row;
    group.once([=] {
      *saved_mean = of_row.mean;
      *saved_rstd = of_row.rstd;
    });
  }
};

/// Of element i of a row: g = dy * weight, and g * z.
struct GradientTerms {
  float g, gz;
};
template <class T>
struct GradientTermsOfRow {
  const T *x, *dy;
  const float* weight;
  float mean, rstd;
  std::int64_t size;
  LOCKSTEP_HOST_DEVICE GradientTerms of(std::int64_t i) const {
    const float g = dy[i] * weight[i];
    return {g, g * ((x[i] - mean) * rstd)};
  }
};

/// The same of a row whose g is there already.
struct StagedGradientTerms {
  const float *x, *g;
  float mean, rstd;
  std::int64_t size;
  LOCKSTEP_HOST_DEVICE GradientTerms of(std::int64_t i) const { return {g[i], g[i] * ((x[i] - mean) * rstd)}; }
};

/// A lane's part of the sums of both, which are added side by side, so that a row is read once for both; in the place
/// of device::LaneElements, and in the order of device::sum_for_lane().
struct LaneGradientSums {
  GradientTerms sums{};
  template <class Row>
  LOCKSTEP_HOST_DEVICE void read(int lane, int /*n*/, const Row& row) {
    constexpr std::int64_t kLanes = device::kGroupLanes, kAhead = device::kAhead;
    std::int64_t i = lane;
    for (; i + (kAhead - 1) * kLanes < row.size; i += kAhead * kLanes) {
      GradientTerms terms[kAhead];
      LOCKSTEP_UNROLL
      for (int k = 0; k < kAhead; ++k) terms[k] = row.of(i + k * kLanes);
      LOCKSTEP_UNROLL
      for (int k = 0; k < kAhead; ++k) add(terms[k]);
    }
    for (; i < row.size; i += kLanes) add(row.of(i));
  }
  template <class Term>
  LOCKSTEP_HOST_DEVICE float sum(int /*lane*/, int /*n*/, const Term& term) const {
    return term(sums);
  }

 private:
  LOCKSTEP_HOST_DEVICE void add(const GradientTerms& terms) {
    sums.g += terms.g;
    sums.gz += terms.gz;
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
    const float mean = means[row], rstd = rstds[row];
    const GradientTerms of_row = mean_terms(group, GradientTermsOfRow<T>{xr, dyr, w, mean, rstd, size});
    const auto gradient = [=](std::int64_t i) {
      const float z = (xr[i] - mean) * rstd;
      return rstd * (dyr[i] * w[i] - of_row.g - z * of_row.gz);
    };
    const auto store = [=](std::int64_t i, float value) { dxr[i] = value; };
    group.barrier();  // what is stored may lie over what other lanes have read
    if (term == nullptr) {
      each_from_end(group, size, gradient, store);
    } else {
      const T* added = term + row * size;
      each_from_end(
          group, size, [=](std::int64_t i) { return rounded_sum(gradient(i), added[i]); }, store);
    }
  }
  template <class Group>
  LOCKSTEP_HOST_DEVICE void operator()(Group& group, std::int64_t row, float* staged) const {
    const float mean = means[row], rstd = rstds[row], *const xr = staged, *const gr = staged + size;
    group.stage(x + row * size, size, staged);
    group.stage_product(dy + row * size, weight, size, staged + size);
    group.barrier();
    const GradientTerms of_row = mean_terms(group, StagedGradientTerms{xr, gr, mean, rstd, size});
    const auto gradient = [=](std::int64_t i) {
      auto four = device::read_pack<4>(xr + i);
      const auto g = device::read_pack<4>(gr + i);
      LOCKSTEP_UNROLL
      for (int e = 0; e < 4; ++e) {
        const float z = (four.at[e] - mean) * rstd;
        four.at[e] = rstd * (g.at[e] - of_row.g - z * of_row.gz);
      }
      return four;
    };
    write_gradients<T>(group, dx + row * size, size, gradient, term == nullptr ? nullptr : term + row * size);
  }

 private:
  template <class Group, class Row>
  LOCKSTEP_HOST_DEVICE GradientTerms mean_terms(Group& group, const Row& row) const {
    typename Group::template Row<LaneGradientSums> sums;
    group.read(sums, 0, row);
    const float n = size;
    return {group.sum(sums, 0, [](const GradientTerms& of_lane) { return of_lane.g; }) / n,
            group.sum(sums, 0, [](const GradientTerms& of_lane) { return of_lane.gz; }) / n};
  }
};

template <class Grid, class T>
class LayerNormGrid final : public Kernel {
 public:
  LayerNormGrid(Rows rows, double epsilon, bool bias) : rows_(rows), epsilon_(epsilon), bias_(bias) {}

  std::size_t workspace_bytes() const override {
    return device::row_sums_bytes<WeightAndBias>(rows_.count, rows_.size);
  }

  void forward(const ForwardCall& call) override {
    const bool save = !call.saved.empty();
    const auto* bias = bias_ ? static_cast<const float*>(call.parameters[1]) : nullptr;
    launch_rows<Grid>(stream_of(call), rows_, 1,
                      LayerNormFunctor<T>{input<T>(call), static_cast<const float*>(call.parameters[0]), bias,
                                          output<T>(call), save ? static_cast<float*>(call.saved[0]) : nullptr,
                                          save ? static_cast<float*>(call.saved[1]) : nullptr, rows_.size, epsilon_});
  }

  bool can_recompute() const override { return true; }
  bool adds_input_gradient() const override { return true; }
  void recompute(const ForwardCall& call) override { forward(call); }

  void backward(const BackwardCall& call) override {
    const auto* means = static_cast<const float*>(call.saved[0]);
    const auto* rstds = static_cast<const float*>(call.saved[1]);
    const T *x = input<T>(call), *dy = output_gradient<T>(call);
    const WeightAndBiasGradients gradients{call.parameter_gradients[0], bias_ ? call.parameter_gradients[1] : nullptr};
    if (gradients.weight != nullptr || gradients.bias != nullptr) {
      launch_weight_and_bias_sums<Grid>(stream_of(call), ScaleGradients<T, true>{x, dy, means, rstds, rows_.size},
                                        rows_.count, gradients, static_cast<WeightAndBias*>(call.workspace));
    }
    // Last, because it may overwrite x or dy.
    if (T* dx = input_gradient<T>(call); dx != nullptr) {
      const auto* weight = static_cast<const float*>(call.parameters[0]);
      launch_rows<Grid>(stream_of(call), rows_, 2,
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
