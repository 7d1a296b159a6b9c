// Position of the elements in a convolution's weight. The model stores it as [filters, channels, taps]; GPU libraries
// want channels last, [filters, taps, channels].
#pragma once

#include <cstdint>

#include "core/divisor.hpp"
#include "core/host_device.hpp"

namespace lockstep {

/// Sizes of one filter. If one of them is 1, both orders are the same.
struct FilterSizes {
  FilterSizes() : FilterSizes(1, 1) {}
  FilterSizes(std::int64_t channels_of_filter, std::int64_t taps_of_channel)
      : channels(channels_of_filter), taps(taps_of_channel) {}
  Divisor channels, taps;

  LOCKSTEP_HOST_DEVICE bool orders_differ() const { return channels.value() > 1 && taps.value() > 1; }
  /// Index in the model's order of element i of a channels-last weight.
  LOCKSTEP_HOST_DEVICE std::int64_t of(std::int64_t i) const {
    const std::int64_t channel = i % channels, tap = i / channels % taps, filter = i / channels / taps;
    return (filter * channels.value() + channel) * taps.value() + tap;
  }
  /// Index in channels-last order of element i of the model's weight.
  LOCKSTEP_HOST_DEVICE std::int64_t place(std::int64_t i) const {
    const std::int64_t tap = i % taps, channel = i / taps % channels, filter = i / taps / channels;
    return (filter * taps.value() + tap) * channels.value() + channel;
  }
};

}  // namespace lockstep
