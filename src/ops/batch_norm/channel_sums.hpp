// The sums over rows of batch_norm, by channel, in double. A block of rows that fits into the CPU's first-level cache
// is summed in float (see channel_groups.hpp); the blocks are then the rows of device/row_blocks.hpp.
#pragma once

#include <cstdint>

#include "device/row_blocks.hpp"

namespace lockstep::ops {

/// Rows, cut into blocks whose size depends only on the channels.
struct CacheBlocks {
  std::int64_t rows, block;

  LOCKSTEP_HOST_DEVICE std::int64_t count() const { return (rows + block - 1) / block; }
  LOCKSTEP_HOST_DEVICE std::int64_t rows_of(std::int64_t number) const {
    const std::int64_t rest = rows - number * block;
    return rest < block ? rest : block;
  }
};

/// Mean of some rows and sum of squared deviations from it. Added as by Chan, Golub, LeVeque (1983).
struct Moments {
  double rows = 0, mean = 0, squares = 0;

  LOCKSTEP_HOST_DEVICE Moments& operator+=(const Moments& other) {
    const double total = rows + other.rows, share = other.rows / total, cross = rows * share;
    const double delta = other.mean - mean;
    mean += delta * share;
    squares += other.squares + delta * delta * cross;
    rows = total;
    return *this;
  }
};

/// Sums of dy and of dy * (x - mean).
struct GradientTotals {
  double gradient = 0, product = 0;

  LOCKSTEP_HOST_DEVICE GradientTotals& operator+=(const GradientTotals& other) {
    gradient += other.gradient;
    product += other.product;
    return *this;
  }
};

}  // namespace lockstep::ops
