// upsample on a Grid: forward a thread an element of the output, backward one of the input.
#pragma once

#include <memory>

#include "device/gpu/grid.hpp"
#include "ops/element_grid.hpp"
#include "ops/elementwise.hpp"
#include "ops/upsample/upsample_sizes.hpp"

namespace lockstep::ops {

template <class T>
struct UpsampleFunctor {
  UpsampleSizes sizes;
  const T* x;
  T* y;
  LOCKSTEP_HOST_DEVICE float value(std::int64_t i) const { return upsampled(sizes, x, i); }
  LOCKSTEP_HOST_DEVICE void store(std::int64_t i, float value) const { y[i] = value; }
};

template <class T>
struct UpsampleGradientFunctor {
  UpsampleSizes sizes;
  const T* dy;
  T* dx;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const { dx[i] = upsampled_gradient(sizes, dy, i); }
};

template <class Grid, class T>
class UpsampleGrid final : public Kernel {
 public:
  explicit UpsampleGrid(const KernelRequest& request) : sizes_(upsample_sizes(request)) {}

  void forward(const ForwardCall& call) override {
    Grid::each(stream_of(call), sizes_.outputs(), UpsampleFunctor<T>{sizes_, input<T>(call), output<T>(call)});
  }
  void backward(const BackwardCall& call) override {
    if (input_gradient(call) == nullptr) return;
    Grid::each(stream_of(call), sizes_.inputs(),
               UpsampleGradientFunctor<T>{sizes_, output_gradient<T>(call), input_gradient<T>(call)});
  }

 private:
  UpsampleSizes sizes_;
};

template <class Grid>
std::unique_ptr<Kernel> make_upsample_grid(const KernelRequest& request) {
  return make_for_elements(request,
                           [&]<class T>(T /*element*/) { return std::make_unique<UpsampleGrid<Grid, T>>(request); });
}

}  // namespace lockstep::ops
