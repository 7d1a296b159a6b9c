// An attention as cuDNN sees it: each tensor as [batch, heads, positions, size of a head]; the strides describe the
// layout in memory.
#pragma once

#include <array>
#include <cstdint>

#include "lockstep/tensor.hpp"

namespace lockstep::device {

struct HeadsLayout {
  std::array<std::int64_t, 4> sizes{}, strides{};  ///< elements
};

struct AttentionLayout {
  HeadsLayout q, k, v, out;
  bool causal = false;
  float scale = 1;            ///< of the scores
  DType dtype = DType::bf16;  ///< of all four tensors and their gradients
};

/// [batch, positions, stride] in memory, with a row's heads side by side.
constexpr HeadsLayout heads_layout(std::int64_t batch, std::int64_t heads, std::int64_t positions, std::int64_t size,
                                   std::int64_t stride) {
  return {{batch, heads, positions, size}, {positions * stride, size, stride, 1}};
}

}  // namespace lockstep::device
