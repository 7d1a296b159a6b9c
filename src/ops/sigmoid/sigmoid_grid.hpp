// sigmoid over a Grid.
#pragma once

#include "device/float_math.hpp"
#include "ops/elementwise_grid.hpp"

namespace lockstep::ops {

struct SigmoidForward {
  static LOCKSTEP_HOST_DEVICE float of(float x) { return device::vector_sigmoid(x); }
};
struct SigmoidGradient {
  static LOCKSTEP_HOST_DEVICE float of(float y, float dy) { return dy * (y * (1.0F - y)); }
};

template <class Grid>
std::unique_ptr<Kernel> make_sigmoid_grid(const KernelRequest& request) {
  return make_activation_grid<Grid, SigmoidForward, SigmoidGradient, true>(request);
}

}  // namespace lockstep::ops
