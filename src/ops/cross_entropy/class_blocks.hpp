// The sum of exponentials of a row of scores, in one pass over the row: classes are cut into blocks of kClassBlock, and
// a block is summed with its own maximum m_b,
//
//   s_b = sum of e^(x - m_b),   m = max m_b,   sum of e^(x - m) = sum of s_b * e^(m_b - m)
//
// where each sum goes to lanes as in device/cpu/reduce.hpp. The CPU and GPUs do the same. A block fits into registers
// of a GPU's group, and into a CPU's first-level cache; a vocabulary does not, and is hundreds of MB for all tokens of
// a micro-batch. (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018.)
#pragma once

#include <cstdint>

#include "core/host_device.hpp"

namespace lockstep::ops {

inline constexpr std::int64_t kClassBlock = 512;

struct ClassBlocks {
  std::int64_t classes = 0;
  LOCKSTEP_HOST_DEVICE std::int64_t count() const { return (classes + kClassBlock - 1) / kClassBlock; }
  /// If one block holds the row, its maximum and sum are those of the row.
  LOCKSTEP_HOST_DEVICE bool several() const { return classes > kClassBlock; }
  LOCKSTEP_HOST_DEVICE std::int64_t size(std::int64_t block) const {
    const std::int64_t rest = classes - block * kClassBlock;
    return rest < kClassBlock ? rest : kClassBlock;
  }
};

/// What is subtracted from the scores of a block: its maximum; 0 if all are -infinity, so that the block's sum is 0.
LOCKSTEP_HOST_DEVICE inline float block_reference(float maximum) {
  return maximum == -__builtin_inff() ? 0 : maximum;
}

}  // namespace lockstep::ops
