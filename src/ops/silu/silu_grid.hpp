// silu over a Grid.
#pragma once

#include "device/float_math.hpp"
#include "ops/elementwise_grid.hpp"

namespace lockstep::ops {

struct SiluForward {
  static LOCKSTEP_HOST_DEVICE float of(float x) { return x * device::vector_sigmoid(x); }
};
struct SiluGradient {
  static LOCKSTEP_HOST_DEVICE float of(float x, float dy) {
    const float s = device::vector_sigmoid(x);
    return dy * (s + x * s * (1.0F - s));
  }
};

template <class Grid>
std::unique_ptr<Kernel> make_silu_grid(const KernelRequest& request) {
  return make_activation_grid<Grid, SiluForward, SiluGradient, false>(request);
}

}  // namespace lockstep::ops
