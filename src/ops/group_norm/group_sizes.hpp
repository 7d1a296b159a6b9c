// How group_norm sees its input [batch, ..., channels]: rows of channels, `positions` of them for each sample; a sample
// has `groups` of neighbouring channels, `width` of them each. A group's elements are counted position by position.
#pragma once

#include <cstdint>

#include "core/host_device.hpp"
#include "lockstep/op.hpp"

namespace lockstep::ops {

struct GroupSizes {
  std::int64_t samples = 0, positions = 1, groups = 1, width = 1;

  LOCKSTEP_HOST_DEVICE std::int64_t channels() const { return groups * width; }
  LOCKSTEP_HOST_DEVICE std::int64_t rows() const { return samples * positions; }
  /// Elements of a group.
  LOCKSTEP_HOST_DEVICE std::int64_t elements() const { return positions * width; }
  /// Where element i of a group lies; `number` counts the groups of all samples.
  LOCKSTEP_HOST_DEVICE std::int64_t offset(std::int64_t number, std::int64_t i) const {
    const std::int64_t sample = number / groups, group = number % groups;
    return (sample * positions + i / width) * channels() + group * width + i % width;
  }
  /// The group, of all samples, that an element of a row belongs to.
  LOCKSTEP_HOST_DEVICE std::int64_t group_of(std::int64_t row, std::int64_t channel) const {
    return row / positions * groups + channel / width;
  }
};

/// Of an op whose groups, without a setting, are its channels.
[[nodiscard]] GroupSizes group_sizes(const KernelRequest& request);

}  // namespace lockstep::ops
