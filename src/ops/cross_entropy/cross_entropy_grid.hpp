// cross_entropy over a Grid.
#pragma once

#include "ops/cross_entropy/log_loss_grid.hpp"

namespace lockstep::ops {

template <class Grid>
std::unique_ptr<Kernel> make_cross_entropy_grid(const KernelRequest& request) {
  return make_log_loss_grid<Grid>(request, request.attributes->number("label_smoothing"));
}

}  // namespace lockstep::ops
