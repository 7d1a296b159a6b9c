// Samples of several lengths in tensors of one length: of dimension 1, the positions, an op then counts only the first
// ones of each sample, as many as its last input says, `lengths` [b] i32. What stands behind them, the padding, changes
// no output and no gradient. A length that is not among 1 ... positions counts as the nearest that is.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>

#include "core/host_device.hpp"
#include "lockstep/op.hpp"

namespace lockstep::ops {

struct Lengths {
  const std::int32_t* data = nullptr;  ///< [samples]; null: every sample has all positions
  std::int64_t positions = 0;
  /// Of a sample: how many of its positions count.
  LOCKSTEP_HOST_DEVICE std::int64_t of(std::int64_t sample) const {
    if (data == nullptr) return positions;
    const std::int64_t length = data[sample] < 1 ? 1 : data[sample];
    return length < positions ? length : positions;
  }
};

/// Those of input `index` of a call; all positions if it has no such input.
template <class Call>
Lengths lengths_of(const Call& call, std::size_t index, std::int64_t positions) {
  if (call.inputs.size() <= index) return {nullptr, positions};
  return {static_cast<const std::int32_t*>(call.inputs[index]), positions};
}

/// Throws Error(configuration), beginning with `op`, unless `lengths` has a number for each sample of `x` and x has
/// positions.
void require_lengths(const std::string& op, const TensorSpec& x, const TensorSpec& lengths);

/// Forward's lengths for backward, which then needs no input: a saved tensor like them.
struct KeepLengthsFunctor {
  const std::int32_t* from;
  std::int32_t* to;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t sample) const { to[sample] = from[sample]; }
};

}  // namespace lockstep::ops
