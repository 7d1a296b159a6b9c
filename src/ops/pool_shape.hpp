// What max_pool and avg_pool share: attributes, shape rule, and which pixels a window covers.
#pragma once

#include <algorithm>

#include "core/host_device.hpp"
#include "ops/window.hpp"

namespace lockstep::ops {

struct PoolShape {
  Window window;
  WindowShape image;
};

/// Throws Error(configuration) that begins with `op`: each window must cover a pixel of the image.
[[nodiscard]] PoolShape pool_shape(const std::string& op, const Attributes& attributes, const TensorSpec& image);

/// kernel, stride, padding
[[nodiscard]] std::vector<AttributeSpec> pool_attributes();

/// Taps first ... last - 1 of window number `index` lie in the image; tap 0 is at pixel `origin`.
struct Taps {
  LOCKSTEP_HOST_DEVICE Taps(const WindowAxis& axis, std::int64_t index, std::int64_t size)
      : origin(index * axis.stride - axis.before),
        first(std::max<std::int64_t>(0, -origin)),
        last(std::min(axis.kernel, size - origin)) {}
  std::int64_t origin, first, last;
  [[nodiscard]] LOCKSTEP_HOST_DEVICE std::int64_t count() const { return last - first; }
};

}  // namespace lockstep::ops
