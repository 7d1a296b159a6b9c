// A trial of a layer that multiplies by a weight: its results on numbers whose sums are exact in any order.
#pragma once

#include "lockstep/op.hpp"

namespace lockstep::ops {

struct TriedLayer {
  Kernel& layer;
  const KernelRequest& request;
};

/// Whether both compute the same y, gradient of x and gradients of the parameters of inputs, parameters and gradients
/// of y that are -1 or 1, but for the rounding to their types. What a layer leaves unwritten is NaN, and equals
/// nothing. `exact` is in float32. The values are the same in each call.
[[nodiscard]] bool agrees(const TriedLayer& tried, const TriedLayer& exact);

}  // namespace lockstep::ops
