// prelu on a Grid: a thread an element, and sums over rows for the slopes' gradient.
#pragma once

#include <memory>

#include "ops/element_grid.hpp"
#include "ops/elementwise.hpp"
#include "ops/prelu/prelu.hpp"
#include "ops/rows.hpp"
#include "ops/rows_grid.hpp"

namespace lockstep::ops {

template <class T>
struct PreluFunctor {
  const T* x;
  T* y;
  Slopes slopes;
  LOCKSTEP_HOST_DEVICE float value(std::int64_t i) const {
    const float v = x[i];
    return v > 0 ? v : slopes.of(i) * v;
  }
  LOCKSTEP_HOST_DEVICE void store(std::int64_t i, float value) const { y[i] = value; }
};

template <class T>
struct PreluGradientFunctor {
  const T *x, *dy;
  T* dx;
  Slopes slopes;
  LOCKSTEP_HOST_DEVICE float value(std::int64_t i) const {
    const float v = x[i], gradient = dy[i];
    return v > 0 ? gradient : slopes.of(i) * gradient;
  }
  LOCKSTEP_HOST_DEVICE void store(std::int64_t i, float value) const { dx[i] = value; }
};

template <class T>
struct SlopeGradients {
  const T *x, *dy;
  std::int64_t columns;
  LOCKSTEP_HOST_DEVICE float of(std::int64_t row, std::int64_t column) const {
    return slope_gradient(x[row * columns + column], dy[row * columns + column]);
  }
};

/// One thread adds the sums of all channels.
struct ChannelTotalFunctor {
  const float* sums;
  float* total;
  std::int64_t channels;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t /*i*/) const {
    float all = 0;
    for (std::int64_t c = 0; c < channels; ++c) all += sums[c];
    *total = all;
  }
};

template <class Grid, class T>
class PreluGrid final : public Kernel {
 public:
  explicit PreluGrid(const KernelRequest& request)
      : rows_(request.inputs[0]), shared_(request.attributes->boolean("shared")) {}

  /// The sums of the channels, and what sums over rows take.
  std::size_t workspace_bytes() const override {
    return rows_.size * sizeof(float) + device::row_sums_bytes(rows_.count, rows_.size);
  }

  void forward(const ForwardCall& call) override {
    Grid::each(stream_of(call), rows_.count * rows_.size,
               PreluFunctor<T>{input<T>(call), output<T>(call), slopes_of(call)});
  }

  void backward(const BackwardCall& call) override {
    const T *x = input<T>(call), *dy = output_gradient<T>(call);
    if (float* dw = call.parameter_gradients[0]; dw != nullptr) {
      auto* const sums = static_cast<float*>(call.workspace);
      launch_row_sums<Grid>(stream_of(call), SlopeGradients<T>{x, dy, rows_.size}, rows_.count, rows_.size,
                            shared_ ? sums : dw, sums + rows_.size);
      if (shared_) Grid::each(stream_of(call), 1, ChannelTotalFunctor{sums, dw, rows_.size});
    }
    // Last, since it may be written over x or dy.
    if (T* dx = input_gradient<T>(call); dx != nullptr) {
      Grid::each(stream_of(call), rows_.count * rows_.size, PreluGradientFunctor<T>{x, dy, dx, slopes_of(call)});
    }
  }

 private:
  template <class Call>
  Slopes slopes_of(const Call& call) const {
    return {static_cast<const float*>(call.parameters[0]), rows_.size, shared_ ? 0 : 1};
  }

  Rows rows_;
  bool shared_;
};

template <class Grid>
std::unique_ptr<Kernel> make_prelu_grid(const KernelRequest& request) {
  return make_for_elements(request,
                           [&]<class T>(T /*element*/) { return std::make_unique<PreluGrid<Grid, T>>(request); });
}

}  // namespace lockstep::ops
