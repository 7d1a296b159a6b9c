// accuracy over a Grid.
#pragma once

#include "ops/class_metric_grid.hpp"

namespace lockstep::ops {

template <class Grid>
std::unique_ptr<Kernel> make_accuracy_grid(const KernelRequest& request) {
  return make_class_metric_grid<Grid>(request, 1);
}

}  // namespace lockstep::ops
