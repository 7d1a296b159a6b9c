// perplexity over a Grid: the sums are those of cross_entropy without smoothing.
#pragma once

#include "ops/cross_entropy/log_loss_grid.hpp"

namespace lockstep::ops {

template <class Grid>
std::unique_ptr<Kernel> make_perplexity_grid(const KernelRequest& request) {
  return make_log_loss_grid<Grid>(request, 0);
}

}  // namespace lockstep::ops
