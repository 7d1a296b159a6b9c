// tanh over a Grid.
#pragma once

#include "device/float_math.hpp"
#include "ops/elementwise_grid.hpp"

namespace lockstep::ops {

struct TanhForward {
  static LOCKSTEP_HOST_DEVICE float of(float x) { return device::vector_tanh(x); }
};
struct TanhGradient {
  static LOCKSTEP_HOST_DEVICE float of(float y, float dy) { return dy * (1.0F - y * y); }
};

template <class Grid>
std::unique_ptr<Kernel> make_tanh_grid(const KernelRequest& request) {
  return make_activation_grid<Grid, TanhForward, TanhGradient, true>(request);
}

}  // namespace lockstep::ops
