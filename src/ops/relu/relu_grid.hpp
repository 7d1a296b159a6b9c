// relu over a Grid. The gradient at 0 is 0, as in every framework.
#pragma once

#include "ops/elementwise_grid.hpp"

namespace lockstep::ops {

struct ReluForward {
  static LOCKSTEP_HOST_DEVICE float of(float x) { return x > 0 ? x : 0; }
};
struct ReluGradient {
  static LOCKSTEP_HOST_DEVICE float of(float y, float dy) { return y > 0 ? dy : 0; }
};

/// The gradient of what relu was given, of the gradient of what it made, `y`; it may be rounded.
template <class T, class To>
struct ReluGradientFunctor {
  const T *y, *dy;
  To* dx;
  LOCKSTEP_HOST_DEVICE float value(std::int64_t i) const { return ReluGradient::of(y[i], dy[i]); }
  LOCKSTEP_HOST_DEVICE void store(std::int64_t i, float value) const { dx[i] = value; }
};

template <class Grid, class T>
class ReluGrid final : public Kernel {
 public:
  explicit ReluGrid(std::int64_t n) : n_(n) {}
  void forward(const ForwardCall& call) override {
    Grid::each(stream_of(call), n_, MapFunctor<ReluForward, T>{input<T>(call), output<T>(call)});
  }
  void backward(const BackwardCall& call) override {
    const auto* y = static_cast<const T*>(call.outputs[0]);
    Grid::each(stream_of(call), n_, ReluGradientFunctor<T, T>{y, output_gradient<T>(call), input_gradient<T>(call)});
  }

 private:
  std::int64_t n_;
};

template <class Grid>
std::unique_ptr<Kernel> make_relu_grid(const KernelRequest& request) {
  return make_for_elements(request, [&]<class T>(T /*element*/) {
    return std::make_unique<ReluGrid<Grid, T>>(request.outputs[0].elements());
  });
}

}  // namespace lockstep::ops
