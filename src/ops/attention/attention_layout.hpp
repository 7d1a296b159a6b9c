// attention as cuDNN sees it: the memory layout of q, k and v, which are side by side in one tensor, or three tensors.
#pragma once

#include <cmath>

#include "device/gpu/attention_layout.hpp"
#include "ops/attention/attention_sizes.hpp"

namespace lockstep::ops {

[[nodiscard]] inline device::AttentionLayout attention_layout(const AttentionSizes& s, DType dtype) {
  const std::int64_t width = s.heads * s.size, row = s.packed ? 3 * width : width;
  const device::HeadsLayout keys = device::heads_layout(s.batch, s.heads, s.keys, s.size, row);
  return {.q = device::heads_layout(s.batch, s.heads, s.queries, s.size, row),
          .k = keys,
          .v = keys,
          .out = device::heads_layout(s.batch, s.heads, s.queries, s.size, width),
          .causal = s.causal,
          .scale = static_cast<float>(1 / std::sqrt(static_cast<double>(s.size))),
          .dtype = dtype};
}

/// Whether cuDNN's gradients are known to be correct for these sizes. If keys end in the middle of a tile of 128 and
/// there is no causal mask, queries whose scores are all far below zero get NaN (cuDNN up to 9.30 on an H100:
/// cudnn-frontend's pull request 628); with a single query there are NaNs, too, and a crash (its issues 1071 and 1072).
[[nodiscard]] inline bool library_gradients_hold(const AttentionSizes& s) {
  return s.causal || (s.keys % 128 != 64 && s.queries > 1);
}

}  // namespace lockstep::ops
