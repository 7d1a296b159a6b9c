// Elementwise kernels over a Grid (backend/gpu/grid.hpp): a formula is a type with static functions of floats.
#pragma once

#include <cstdint>
#include <memory>

#include "backend/gpu/grid.hpp"
#include "ops/elementwise.hpp"

namespace lockstep::ops {

/// y[i] = Function::of(x[i])
template <class Function>
struct MapBody {
  const float* x;
  float* y;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const { y[i] = Function::of(x[i]); }
};

/// z[i] = Function::of(x[i], y[i]); z may be x or y.
template <class Function>
struct MapPairBody {
  const float *x, *y;
  float* z;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const { z[i] = Function::of(x[i], y[i]); }
};

struct Product {
  static LOCKSTEP_HOST_DEVICE float of(float a, float b) { return a * b; }
};

/// y = Forward::of(x), dx = Gradient::of(seen, dy); `seen` is y where the op's backward reads its output, else x.
template <class Grid, class Forward, class Gradient, bool kReadsOutput>
class ActivationGrid final : public Kernel {
 public:
  explicit ActivationGrid(std::int64_t n) : n_(n) {}
  void forward(const ForwardCall& call) override {
    Grid::each(call.queue, n_, MapBody<Forward>{input(call), output(call)});
  }
  void backward(const BackwardCall& call) override {
    if (input_gradient(call) == nullptr) return;
    const float* seen = kReadsOutput ? static_cast<const float*>(call.outputs[0]) : input(call);
    Grid::each(call.queue, n_, MapPairBody<Gradient>{seen, output_gradient(call), input_gradient(call)});
  }

 private:
  std::int64_t n_;
};

}  // namespace lockstep::ops
