// What cuDNN's convolution leaves to us, over a Grid: a weight [filters, channels, taps] into channels last [filters,
// taps, channels] and back, and the bias.
#pragma once

#include <cstdint>

#include "core/host_device.hpp"

namespace lockstep::ops {

/// Sizes of one filter.
struct FilterSizes {
  std::int64_t channels, taps;
  /// Where element i of a weight with channels last stands in ours.
  [[nodiscard]] LOCKSTEP_HOST_DEVICE std::int64_t in_ours(std::int64_t i) const {
    const std::int64_t channel = i % channels, tap = i / channels % taps, filter = i / channels / taps;
    return (filter * channels + channel) * taps + tap;
  }
};

struct ChannelsLastBody {
  const float* weight;
  float* packed;
  FilterSizes sizes;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const { packed[i] = weight[sizes.in_ours(i)]; }
};

struct ChannelsFirstBody {
  const float* packed;
  float* weight;
  FilterSizes sizes;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const { weight[sizes.in_ours(i)] = packed[i]; }
};

/// y [pixels, filters] += bias
struct AddBiasBody {
  const float* bias;
  float* y;
  std::int64_t filters;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const { y[i] += bias[i % filters]; }
};

}  // namespace lockstep::ops
