// Elementwise kernels over a Grid (device/gpu/grid.hpp): a formula is a type with static functions of floats.
#pragma once

#include <cstdint>
#include <memory>

#include "device/gpu/grid.hpp"
#include "ops/element_grid.hpp"
#include "ops/elementwise.hpp"

namespace lockstep::ops {

/// y[i] = Function::of(x[i])
template <class Function, class T>
struct MapFunctor {
  const T* x;
  T* y;
  LOCKSTEP_HOST_DEVICE float value(std::int64_t i) const { return Function::of(x[i]); }
  LOCKSTEP_HOST_DEVICE void store(std::int64_t i, float value) const { y[i] = value; }
};

/// z[i] = Function::of(x[i], y[i]); z may be x or y.
template <class Function, class X, class Y = X>
struct MapPairFunctor {
  const X* x;
  const Y* y;
  X* z;
  LOCKSTEP_HOST_DEVICE float value(std::int64_t i) const { return Function::of(x[i], y[i]); }
  LOCKSTEP_HOST_DEVICE void store(std::int64_t i, float value) const { z[i] = value; }
};

struct Product {
  static LOCKSTEP_HOST_DEVICE float of(float a, float b) { return a * b; }
};

/// y = Forward::of(x), dx = Gradient::of(seen, dy); `seen` is y where the op's backward reads its output, else x.
template <class Grid, class T, class Forward, class Gradient, bool kReadsOutput>
class ActivationGrid final : public Kernel {
 public:
  explicit ActivationGrid(std::int64_t n) : n_(n) {}
  void forward(const ForwardCall& call) override {
    Grid::each(stream_of(call), n_, MapFunctor<Forward, T>{input<T>(call), output<T>(call)});
  }
  void backward(const BackwardCall& call) override {
    if (input_gradient(call) == nullptr) return;
    const T* seen = kReadsOutput ? static_cast<const T*>(call.outputs[0]) : input<T>(call);
    Grid::each(stream_of(call), n_,
               MapPairFunctor<Gradient, T>{seen, output_gradient<T>(call), input_gradient<T>(call)});
  }

 private:
  std::int64_t n_;
};

template <class Grid, class Forward, class Gradient, bool kReadsOutput>
std::unique_ptr<Kernel> make_activation_grid(const KernelRequest& request) {
  return make_for_elements(request, [&]<class T>(T /*element*/) {
    return std::make_unique<ActivationGrid<Grid, T, Forward, Gradient, kReadsOutput>>(request.outputs[0].elements());
  });
}

}  // namespace lockstep::ops
