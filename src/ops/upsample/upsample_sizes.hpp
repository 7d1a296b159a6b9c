// upsample: images that become `rows` times as high and `columns` times as wide. Along an axis of n pixels and a factor
// f, output o lies at (o + 1/2) / f - 1/2 of the input, cut to 0 ... n - 1, as in PyTorch (align_corners=False), Keras
// and image libraries: between two pixels, of which the nearer one counts alone, or both by their nearness.
#pragma once

#include <cstdint>

#include "core/host_device.hpp"
#include "lockstep/op.hpp"

namespace lockstep::ops {

/// Two pixels of an axis and how much the second one counts.
struct Neighbours {
  std::int64_t first, second;
  float share;
};

struct UpsampleAxis {
  std::int64_t size = 0, factor = 1;
  bool linear = false;

  LOCKSTEP_HOST_DEVICE std::int64_t outputs() const { return size * factor; }
  LOCKSTEP_HOST_DEVICE Neighbours of(std::int64_t output) const {
    if (!linear) return {output / factor, output / factor, 0};
    // In halves of an output's step, which are whole numbers.
    const std::int64_t twice = 2 * output + 1 - factor;
    if (twice <= 0) return {0, 0, 0};
    const std::int64_t first = twice / (2 * factor), rest = twice % (2 * factor);
    if (first + 1 >= size) return {size - 1, size - 1, 0};
    return {first, first + 1, static_cast<float>(rest) / (2 * factor)};
  }
  /// How much output o counts for a pixel.
  LOCKSTEP_HOST_DEVICE float weight(std::int64_t output, std::int64_t pixel) const {
    const Neighbours at = of(output);
    return (at.first == pixel ? 1.0F - at.share : 0.0F) +
           (at.second == pixel && at.second != at.first ? at.share : 0.0F);
  }
  /// Outputs that may count for a pixel: from here on, up to end().
  LOCKSTEP_HOST_DEVICE std::int64_t begin(std::int64_t pixel) const {
    const std::int64_t first = (linear ? pixel - 1 : pixel) * factor;
    return first < 0 ? 0 : first;
  }
  LOCKSTEP_HOST_DEVICE std::int64_t end(std::int64_t pixel) const {
    const std::int64_t last = (linear ? pixel + 2 : pixel + 1) * factor;
    return last > outputs() ? outputs() : last;
  }
};

struct UpsampleSizes {
  std::int64_t batch = 0, channels = 0;
  UpsampleAxis rows, columns;

  LOCKSTEP_HOST_DEVICE std::int64_t inputs() const { return batch * rows.size * columns.size * channels; }
  LOCKSTEP_HOST_DEVICE std::int64_t outputs() const { return batch * rows.outputs() * columns.outputs() * channels; }
};

[[nodiscard]] UpsampleSizes upsample_sizes(const KernelRequest& request);

/// Element i of the output, from x.
template <class T>
LOCKSTEP_HOST_DEVICE float upsampled(const UpsampleSizes& sizes, const T* x, std::int64_t i) {
  const std::int64_t channel = i % sizes.channels, width = sizes.columns.outputs(), height = sizes.rows.outputs();
  const std::int64_t column = i / sizes.channels % width, row = i / sizes.channels / width % height;
  const Neighbours r = sizes.rows.of(row), c = sizes.columns.of(column);
  const T* image = x + i / sizes.channels / width / height * sizes.rows.size * sizes.columns.size * sizes.channels;
  const auto at = [&](std::int64_t y, std::int64_t z) {
    return float{image[(y * sizes.columns.size + z) * sizes.channels + channel]};
  };
  const float top = at(r.first, c.first) * (1.0F - c.share) + at(r.first, c.second) * c.share;
  const float bottom = at(r.second, c.first) * (1.0F - c.share) + at(r.second, c.second) * c.share;
  return top * (1.0F - r.share) + bottom * r.share;
}

/// The gradient of element i of the input: outputs row after row.
template <class T>
LOCKSTEP_HOST_DEVICE float upsampled_gradient(const UpsampleSizes& sizes, const T* dy, std::int64_t i) {
  const std::int64_t channel = i % sizes.channels, column = i / sizes.channels % sizes.columns.size;
  const std::int64_t row = i / sizes.channels / sizes.columns.size % sizes.rows.size;
  const std::int64_t sample = i / sizes.channels / sizes.columns.size / sizes.rows.size;
  const std::int64_t width = sizes.columns.outputs();
  const T* image = dy + sample * sizes.rows.outputs() * width * sizes.channels;
  float sum = 0;
  for (std::int64_t y = sizes.rows.begin(row); y < sizes.rows.end(row); ++y) {
    const float of_row = sizes.rows.weight(y, row);
    for (std::int64_t z = sizes.columns.begin(column); z < sizes.columns.end(column); ++z) {
      sum += float{image[(y * width + z) * sizes.channels + channel]} * (of_row * sizes.columns.weight(z, column));
    }
  }
  return sum;
}

}  // namespace lockstep::ops
