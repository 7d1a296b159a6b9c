// last, reverse and mask: each position of the output, and of the input's gradient, is a copy of one position, or 0.
#pragma once

#include <cstdint>

#include "ops/lengths.hpp"

namespace lockstep::ops {

enum class PositionMove : std::uint8_t {
  last,     ///< [b, T, ...] to [b, ...]: the last position that counts
  reverse,  ///< those that count in the opposite order; the padding stays where it is
  mask,     ///< the padding becomes 0
};

/// Tensors [samples, from, width] and, made of it, [samples, to, width].
struct MovedRows {
  PositionMove move = PositionMove::last;
  bool backward = false;
  std::int64_t samples = 0, from = 0, to = 0, width = 0;

  LOCKSTEP_HOST_DEVICE std::int64_t elements() const { return samples * to * width; }
  /// Which of the `from` positions position t is; -1: none, it is 0.
  LOCKSTEP_HOST_DEVICE std::int64_t source(std::int64_t t, std::int64_t length) const {
    if (move == PositionMove::last) return !backward ? length - 1 : t == length - 1 ? 0 : -1;
    if (t >= length) return move == PositionMove::mask ? -1 : t;
    return move == PositionMove::mask ? t : length - 1 - t;
  }
};

[[nodiscard]] MovedRows moved_rows(const KernelRequest& request, PositionMove move, bool backward);

}  // namespace lockstep::ops
