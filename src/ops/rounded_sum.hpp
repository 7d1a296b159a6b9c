// The sum of two gradients of which the first has just been computed, as if it had been stored in between.
#pragma once

#include "core/host_device.hpp"

namespace lockstep::ops {

/// left, rounded to T, + right
template <class T>
LOCKSTEP_HOST_DEVICE float rounded_sum(float left, const T& right) {
  T rounded{};
  rounded = left;
  return rounded + right;
}

}  // namespace lockstep::ops
