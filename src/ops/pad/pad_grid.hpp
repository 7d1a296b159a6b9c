// pad on a Grid: forward a thread an element of the output, backward one of the input.
#pragma once

#include <memory>

#include "device/gpu/grid.hpp"
#include "ops/element_grid.hpp"
#include "ops/elementwise.hpp"
#include "ops/pad/pad_sizes.hpp"

namespace lockstep::ops {

template <class T>
struct PadFunctor {
  PadSizes sizes;
  const T* x;
  T* y;
  LOCKSTEP_HOST_DEVICE float value(std::int64_t i) const { return padded(sizes, x, i); }
  LOCKSTEP_HOST_DEVICE void store(std::int64_t i, float value) const { y[i] = value; }
};

template <class T>
struct PadGradientFunctor {
  PadSizes sizes;
  const T* dy;
  T* dx;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const { dx[i] = padded_gradient(sizes, dy, i); }
};

template <class Grid, class T>
class PadGrid final : public Kernel {
 public:
  explicit PadGrid(const KernelRequest& request) : sizes_(pad_sizes(request)) {}

  void forward(const ForwardCall& call) override {
    Grid::each(stream_of(call), sizes_.outputs(), PadFunctor<T>{sizes_, input<T>(call), output<T>(call)});
  }
  void backward(const BackwardCall& call) override {
    if (input_gradient(call) == nullptr) return;
    Grid::each(stream_of(call), sizes_.inputs(),
               PadGradientFunctor<T>{sizes_, output_gradient<T>(call), input_gradient<T>(call)});
  }

 private:
  PadSizes sizes_;
};

template <class Grid>
std::unique_ptr<Kernel> make_pad_grid(const KernelRequest& request) {
  return make_for_elements(request,
                           [&]<class T>(T /*element*/) { return std::make_unique<PadGrid<Grid, T>>(request); });
}

}  // namespace lockstep::ops
