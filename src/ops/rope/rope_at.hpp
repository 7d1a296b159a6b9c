// rope of one position, wherever its tensor begins: for models that compute position by position.
#pragma once

#include <cstdint>

namespace lockstep::ops {

struct RopePosition {
  double base = 0;
  std::int64_t position = 0, heads = 0, pairs = 0;  ///< pairs of a head
};

/// Turns the heads [heads, 2, pairs] of one position, with the bits of the op.
void rope_at(const RopePosition& at, const float* x, float* y);

}  // namespace lockstep::ops
