// group_norm and instance_norm on a Grid, a group of lanes a group of channels, and sums over rows; the formulas are
// those of group_norm_op.cpp.
#pragma once

#include <cmath>
#include <memory>

#include "ops/element_grid.hpp"
#include "ops/elementwise.hpp"
#include "ops/group_norm/group_sizes.hpp"
#include "ops/rows_grid.hpp"

namespace lockstep::ops {

template <class T>
struct GroupNormFunctor {
  GroupSizes sizes;
  const T* x;
  const float *weight, *bias;  ///< null where it is not affine
  T* y;
  float *means, *rstds;  ///< null in inference
  float epsilon;
  template <class Group>
  LOCKSTEP_HOST_DEVICE void operator()(Group& group, std::int64_t number) const {
    const GroupSizes s = sizes;
    const T* from = x;
    const float n = s.elements();
    const float mean = group.sum(s.elements(), [=](std::int64_t i) { return from[s.offset(number, i)]; }) / n;
    const float squares = group.sum(s.elements(), [=](std::int64_t i) {
      const float centered = from[s.offset(number, i)] - mean;
      return centered * centered;
    });
    const float rstd = 1.0F / std::sqrt(squares / n + epsilon);
    const std::int64_t first = number % s.groups * s.width;
    const float *w = weight, *b = bias;
    T* to = y;
    group.each(s.elements(), [=](std::int64_t i) {
      const std::int64_t at = s.offset(number, i), channel = first + i % s.width;
      const float z = (from[at] - mean) * rstd;
      to[at] = w == nullptr ? z : z * w[channel] + b[channel];
    });
    if (means == nullptr) return;
    float *saved_mean = means + number, *saved_rstd = rstds + number;
    group.once([=] {
      *saved_mean = mean;
      *saved_rstd = rstd;
    });
  }
};

template <class T>
struct GroupNormGradientFunctor {
  GroupSizes sizes;
  const T *x, *dy;
  const float *means, *rstds, *weight;  ///< weight is null where it is not affine
  T* dx;
  template <class Group>
  LOCKSTEP_HOST_DEVICE void operator()(Group& group, std::int64_t number) const {
    const GroupSizes s = sizes;
    const T *from = x, *gradient = dy;
    T* to = dx;
    const float* w = weight;
    const float n = s.elements();
    const std::int64_t first = number % s.groups * s.width;
    const float mean = means[number], rstd = rstds[number];
    const auto z = [=](std::int64_t i) { return (from[s.offset(number, i)] - mean) * rstd; };
    const auto g = [=](std::int64_t i) {
      const float value = gradient[s.offset(number, i)];
      return w == nullptr ? value : value * w[first + i % s.width];
    };
    const float mean_g = group.sum(s.elements(), g) / n;
    const float mean_gz = group.sum(s.elements(), [=](std::int64_t i) { return g(i) * z(i); }) / n;
    group.each(s.elements(),
               [=](std::int64_t i) { to[s.offset(number, i)] = rstd * (g(i) - mean_g - z(i) * mean_gz); });
  }
};

/// The terms of the weight's gradient: dy * z.
template <class T>
struct GroupScaleGradients {
  GroupSizes sizes;
  const T *x, *dy;
  const float *means, *rstds;
  LOCKSTEP_HOST_DEVICE float of(std::int64_t row, std::int64_t channel) const {
    const std::int64_t at = row * sizes.channels() + channel, group = sizes.group_of(row, channel);
    return dy[at] * ((x[at] - means[group]) * rstds[group]);
  }
};

template <class Grid, class T>
class GroupNormGrid final : public Kernel {
 public:
  explicit GroupNormGrid(const KernelRequest& request)
      : sizes_(group_sizes(request)),
        epsilon_(request.attributes->number("epsilon")),
        affine_(!request.parameters.empty()) {}

  std::size_t workspace_bytes() const override { return device::row_sums_bytes(sizes_.rows(), sizes_.channels()); }

  void forward(const ForwardCall& call) override {
    const bool save = !call.saved.empty();
    Grid::rows(
        stream_of(call), sizes_.samples * sizes_.groups,
        GroupNormFunctor<T>{sizes_, input<T>(call), affine_ ? static_cast<const float*>(call.parameters[0]) : nullptr,
                            affine_ ? static_cast<const float*>(call.parameters[1]) : nullptr, output<T>(call),
                            save ? static_cast<float*>(call.saved[0]) : nullptr,
                            save ? static_cast<float*>(call.saved[1]) : nullptr, epsilon_});
  }

  bool can_recompute() const override { return true; }
  void recompute(const ForwardCall& call) override { forward(call); }

  void backward(const BackwardCall& call) override {
    const auto* means = static_cast<const float*>(call.saved[0]);
    const auto* rstds = static_cast<const float*>(call.saved[1]);
    const T *x = input<T>(call), *dy = output_gradient<T>(call);
    if (float* dw = affine_ ? call.parameter_gradients[0] : nullptr; dw != nullptr) {
      sum(call, GroupScaleGradients<T>{sizes_, x, dy, means, rstds}, dw);
    }
    if (float* db = affine_ ? call.parameter_gradients[1] : nullptr; db != nullptr) {
      sum(call, device::RowElements<T>{dy, sizes_.channels()}, db);
    }
    // Last, since it may be written over x or dy.
    if (T* dx = input_gradient<T>(call); dx != nullptr) {
      const auto* weight = affine_ ? static_cast<const float*>(call.parameters[0]) : nullptr;
      Grid::rows(stream_of(call), sizes_.samples * sizes_.groups,
                 GroupNormGradientFunctor<T>{sizes_, x, dy, means, rstds, weight, dx});
    }
  }

 private:
  template <class Terms>
  void sum(const BackwardCall& call, const Terms& terms, float* total) const {
    launch_row_sums<Grid>(stream_of(call), terms, sizes_.rows(), sizes_.channels(), total,
                          static_cast<float*>(call.workspace));
  }

  GroupSizes sizes_;
  float epsilon_;
  bool affine_;
};

template <class Grid>
std::unique_ptr<Kernel> make_norm_of_groups(const KernelRequest& request) {
  return make_for_elements(request,
                           [&]<class T>(T /*element*/) { return std::make_unique<GroupNormGrid<Grid, T>>(request); });
}

template <class Grid>
std::unique_ptr<Kernel> make_group_norm_grid(const KernelRequest& request) {
  return make_norm_of_groups<Grid>(request);
}

template <class Grid>
std::unique_ptr<Kernel> make_instance_norm_grid(const KernelRequest& request) {
  return make_norm_of_groups<Grid>(request);
}

}  // namespace lockstep::ops
