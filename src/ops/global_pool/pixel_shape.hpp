// How global_pool, mean and max see their input: [samples, pixels, channels], of which the pixels become one.
#pragma once

#include <cstdint>
#include <string>

#include "core/host_device.hpp"
#include "lockstep/op.hpp"
#include "ops/lengths.hpp"

namespace lockstep::ops {

struct PixelShape {
  std::int64_t pixels, channels;
  /// Pixel 0 of output i.
  LOCKSTEP_HOST_DEVICE std::int64_t first(std::int64_t i) const {
    return i / channels * pixels * channels + i % channels;
  }
};

/// Of how many pixels each sample's output is made: its second input, if it has lengths.
[[nodiscard]] inline Lengths pixel_counts(const ForwardCall& call, const PixelShape& shape) {
  return lengths_of(call, 1, shape.pixels);
}
/// The same in backward, of a mean: forward has saved them.
[[nodiscard]] inline Lengths pixel_counts(const BackwardCall& call, const PixelShape& shape) {
  return {call.saved.empty() ? nullptr : static_cast<const std::int32_t*>(call.saved[0]), shape.pixels};
}

/// Of global_pool: everything between the batch and the channels is pixels.
[[nodiscard]] PixelShape shape_of_pixels(const KernelRequest& request);
/// Of an op over one dimension: it is the pixels. Throws as axis_of() does.
[[nodiscard]] PixelShape shape_over_axis(const std::string& op, const KernelRequest& request);

}  // namespace lockstep::ops
