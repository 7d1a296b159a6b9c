// What cuDNN's convolution leaves to us, over a Grid: a weight [filters, channels, taps] into channels last [filters,
// taps, channels] and back.
#pragma once

#include <cstdint>

#include "core/divisor.hpp"
#include "core/host_device.hpp"
#include "ops/gather_grid.hpp"

namespace lockstep::ops {

/// Sizes of one filter.
struct FilterSizes {
  FilterSizes(std::int64_t channels_of_filter, std::int64_t taps_of_channel)
      : channels(channels_of_filter), taps(taps_of_channel) {}
  Divisor channels, taps;
  /// Where element i of a weight with channels last stands in ours.
  [[nodiscard]] LOCKSTEP_HOST_DEVICE std::int64_t of(std::int64_t i) const {
    const std::int64_t channel = i % channels, tap = i / channels % taps, filter = i / channels / taps;
    return (filter * channels.value() + channel) * taps.value() + tap;
  }
};

/// weight -> packed, and packed -> weight.
template <class T>
using ChannelsLastBody = GatherBody<FilterSizes, T>;
using ChannelsFirstBody = ScatterBody<FilterSizes, float>;

}  // namespace lockstep::ops
