// attention as cuDNN sees it: where q, k and v lie, in one tensor side by side or in three.
#pragma once

#include <cmath>

#include "backend/gpu/attention_layout.hpp"
#include "ops/attention/attention_sizes.hpp"

namespace lockstep::ops {

[[nodiscard]] inline backend::AttentionLayout attention_layout(const AttentionSizes& s, DType dtype) {
  const std::int64_t width = s.heads * s.size, row = s.packed ? 3 * width : width;
  const backend::HeadsLayout keys = backend::heads_layout(s.batch, s.heads, s.keys, s.size, row);
  return {.q = backend::heads_layout(s.batch, s.heads, s.queries, s.size, row),
          .k = keys,
          .v = keys,
          .out = backend::heads_layout(s.batch, s.heads, s.queries, s.size, width),
          .causal = s.causal,
          .scale = static_cast<float>(1 / std::sqrt(static_cast<double>(s.size))),
          .dtype = dtype};
}

}  // namespace lockstep::ops
