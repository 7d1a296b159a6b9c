// prelu: x above 0, below it a learned share of x: one for each channel (the last dimension), or one for all.
// Source: He, Zhang, Ren and Sun, "Delving Deep into Rectifiers", 2015. The gradient at 0 is the slope's, as in every
// framework; weight decay leaves the slopes alone by default, as the paper does.
#pragma once

#include <cstdint>

#include "core/host_device.hpp"

namespace lockstep::ops {

/// The slope of each channel: channel c has weight[c * step].
struct Slopes {
  const float* weight;
  std::int64_t channels, step;  ///< step 0: all have one
  LOCKSTEP_HOST_DEVICE float of(std::int64_t element) const { return weight[element % channels * step]; }
};

/// What an element adds to the gradient of its slope.
[[nodiscard]] LOCKSTEP_HOST_DEVICE inline float slope_gradient(float x, float dy) {
  return x > 0 ? 0 : dy * x;
}

}  // namespace lockstep::ops
