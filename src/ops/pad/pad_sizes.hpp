// pad: images with pixels around them: zeros, or the image's own pixels mirrored at its first and last ones, which are
// not repeated (PyTorch's ReflectionPad2d, TensorFlow's REFLECT).
#pragma once

#include <cstdint>

#include "core/host_device.hpp"
#include "lockstep/op.hpp"

namespace lockstep::ops {

struct PadAxis {
  std::int64_t size = 0, before = 0, after = 0;

  LOCKSTEP_HOST_DEVICE std::int64_t outputs() const { return before + size + after; }
  /// The pixel that is seen at an output; -1: none.
  LOCKSTEP_HOST_DEVICE std::int64_t pixel(std::int64_t output, bool reflect) const {
    const std::int64_t at = output - before;
    if (at >= 0 && at < size) return at;
    if (!reflect) return -1;
    return at < 0 ? -at : 2 * (size - 1) - at;
  }
  /// The output number `which` (0, 1, 2) of those that see a pixel, from left to right; -1: there is none.
  LOCKSTEP_HOST_DEVICE std::int64_t output(std::int64_t pixel, int which, bool reflect) const {
    if (which == 1) return before + pixel;
    if (!reflect) return -1;
    if (which == 0) return pixel > 0 && pixel <= before ? before - pixel : -1;
    const std::int64_t from_last = size - 1 - pixel;
    return from_last > 0 && from_last <= after ? before + size - 1 + from_last : -1;
  }
};

struct PadSizes {
  std::int64_t batch = 0, channels = 0;
  PadAxis rows, columns;
  bool reflect = false;

  LOCKSTEP_HOST_DEVICE std::int64_t inputs() const { return batch * rows.size * columns.size * channels; }
  LOCKSTEP_HOST_DEVICE std::int64_t outputs() const { return batch * rows.outputs() * columns.outputs() * channels; }
};

[[nodiscard]] PadSizes pad_sizes(const KernelRequest& request);

/// Element i of the output, from x.
template <class T>
LOCKSTEP_HOST_DEVICE float padded(const PadSizes& s, const T* x, std::int64_t i) {
  const std::int64_t channel = i % s.channels, pixel = i / s.channels, width = s.columns.outputs();
  const std::int64_t column = s.columns.pixel(pixel % width, s.reflect);
  const std::int64_t row = s.rows.pixel(pixel / width % s.rows.outputs(), s.reflect);
  if (row < 0 || column < 0) return 0;
  const std::int64_t sample = pixel / width / s.rows.outputs();
  return float{x[((sample * s.rows.size + row) * s.columns.size + column) * s.channels + channel]};
}

/// The gradient of element i of the input: the outputs that see it, row after row.
template <class T>
LOCKSTEP_HOST_DEVICE float padded_gradient(const PadSizes& s, const T* dy, std::int64_t i) {
  const std::int64_t channel = i % s.channels, pixel = i / s.channels;
  const std::int64_t column = pixel % s.columns.size, row = pixel / s.columns.size % s.rows.size;
  const std::int64_t sample = pixel / s.columns.size / s.rows.size;
  float sum = 0;
  for (int r = 0; r < 3; ++r) {
    const std::int64_t y = s.rows.output(row, r, s.reflect);
    for (int c = 0; y >= 0 && c < 3; ++c) {
      const std::int64_t z = s.columns.output(column, c, s.reflect);
      if (z < 0) continue;
      sum += float{dy[((sample * s.rows.outputs() + y) * s.columns.outputs() + z) * s.channels + channel]};
    }
  }
  return sum;
}

}  // namespace lockstep::ops
