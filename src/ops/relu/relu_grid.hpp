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

template <class Grid>
std::unique_ptr<Kernel> make_relu_grid(const KernelRequest& request) {
  return make_activation_grid<Grid, ReluForward, ReluGradient, true>(request);
}

}  // namespace lockstep::ops
