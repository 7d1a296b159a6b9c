// scale over a Grid.
#pragma once

#include <memory>

#include "device/gpu/grid.hpp"
#include "ops/element_grid.hpp"
#include "ops/elementwise.hpp"

namespace lockstep::ops {

template <class T>
struct ScaleFunctor {
  const T* x;
  T* y;
  float factor;
  LOCKSTEP_HOST_DEVICE float value(std::int64_t i) const { return factor * x[i]; }
  LOCKSTEP_HOST_DEVICE void store(std::int64_t i, float value) const { y[i] = value; }
};

template <class Grid, class T>
class ScaleGrid final : public Kernel {
 public:
  ScaleGrid(double factor, std::int64_t n) : factor_(static_cast<float>(factor)), n_(n) {}

  void forward(const ForwardCall& call) override {
    Grid::each(stream_of(call), n_, ScaleFunctor<T>{input<T>(call), output<T>(call), factor_});
  }
  void backward(const BackwardCall& call) override {
    T* dx = input_gradient<T>(call);
    if (dx != nullptr) Grid::each(stream_of(call), n_, ScaleFunctor<T>{output_gradient<T>(call), dx, factor_});
  }

 private:
  float factor_;
  std::int64_t n_;
};

template <class Grid>
std::unique_ptr<Kernel> make_scale_grid(const KernelRequest& request) {
  return make_for_elements(request, [&]<class T>(T /*element*/) {
    return std::make_unique<ScaleGrid<Grid, T>>(request.attributes->number("factor"), request.outputs[0].elements());
  });
}

}  // namespace lockstep::ops
