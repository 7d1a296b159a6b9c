// The order of a sum over rows, the same on CPUs and GPUs. Rows are cut into blocks of kBlockRows; a block is added
// from its first row to its last, starting with 0. The blocks' sums are rows again, and are cut and added in the same
// way, level by level, until one is left. Threads, grids and vector widths do not influence it.
//
// Why 64: 8,192 rows of 768 columns give a GPU 98,304 threads, with few enough sequential additions on each of three
// levels; and a CPU writes one sum for each 64 rows that it reads, which costs almost nothing.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/host_device.hpp"

namespace lockstep::device {

inline constexpr std::int64_t kBlockRows = 64;
/// Rows that a thread reads before it adds the first one; terms that need few registers may say more (kRowsAtOnce).
inline constexpr int kRowsAhead = 8;
template <class Terms>
constexpr int rows_ahead() {
  if constexpr (requires { Terms::kRowsAtOnce; }) {
    return Terms::kRowsAtOnce;
  } else {
    return kRowsAhead;
  }
}

/// The rows of one level. Zero rows are one block, whose sum is 0.
struct RowBlocks {
  std::int64_t rows = 0;

  LOCKSTEP_HOST_DEVICE constexpr std::int64_t count() const {
    return rows > kBlockRows ? (rows + kBlockRows - 1) / kBlockRows : 1;
  }
  LOCKSTEP_HOST_DEVICE constexpr std::int64_t begin(std::int64_t block) const { return block * kBlockRows; }
  LOCKSTEP_HOST_DEVICE constexpr std::int64_t end(std::int64_t block) const {
    return begin(block) + kBlockRows < rows ? begin(block) + kBlockRows : rows;
  }
};

/// Rows of scratch memory for a sum over `rows`: the sums of all levels but the last.
constexpr std::int64_t scratch_rows(std::int64_t rows) {
  std::int64_t all = 0;
  for (rows = RowBlocks{rows}.count(); rows > 1; rows = RowBlocks{rows}.count()) all += rows;
  return all;
}

/// The bytes of that scratch memory, for sums in T.
template <class T = float>
constexpr std::size_t row_sums_bytes(std::int64_t rows, std::int64_t columns) {
  return (scratch_rows(rows) * columns) * sizeof(T);
}

/// The levels of a sum over rows of `columns`, one after another: first(blocks, to), then next(from, blocks, to), each
/// of which writes a row per block. The last one writes `total`; scratch is [scratch_rows(rows), columns].
template <class T, class First, class Next>
void for_levels(std::int64_t rows, std::int64_t columns, T* total, T* scratch, const First& first, const Next& next) {
  RowBlocks blocks{rows};
  T* to = blocks.count() > 1 ? scratch : total;
  first(blocks, to);
  while (blocks.count() > 1) {
    const T* const from = to;
    blocks = {blocks.count()};
    to = blocks.count() > 1 ? to + blocks.rows * columns : total;
    next(from, blocks, to);
  }
}

/// The same for rows in memory: level(from, blocks, to) for each level.
template <class T, class Level>
void for_levels_of(const T* x, std::int64_t rows, std::int64_t columns, T* total, T* scratch, const Level& level) {
  for_levels(
      rows, columns, total, scratch, [&](const RowBlocks& blocks, T* to) { level(x, blocks, to); }, level);
}

/// Rows in memory. Other terms need a function `of` like this one.
template <class T>
struct RowElements {
  static constexpr int kRowsAtOnce = 16;
  const T* x;
  std::int64_t step;  ///< elements from one row to the next
  LOCKSTEP_HOST_DEVICE T of(std::int64_t row, std::int64_t column) const { return x[row * step + column]; }
};

/// Sums in memory. Another place for them needs a function like this one.
template <class T>
LOCKSTEP_HOST_DEVICE void put_sum(T* to, std::int64_t i, const T& sum) {
  to[i] = sum;
}

/// One level, with one thread per column of a block. Neighbouring threads read neighbouring columns; a thread reads
/// rows_ahead() rows before it adds the first, so that it waits for memory only once for all of them.
template <class Terms, class T, class To = T*>
struct SumBlocksFunctor {
  Terms terms;
  RowBlocks blocks;
  std::int64_t columns = 0;
  To to{};  ///< [blocks, columns]
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t column = i % columns, block = i / columns, end = blocks.end(block);
    std::int64_t row = blocks.begin(block);
    T sum{};
    constexpr int kRowsAtOnce = rows_ahead<Terms>();
    for (; row + kRowsAtOnce <= end; row += kRowsAtOnce) {
      T next[kRowsAtOnce];
      LOCKSTEP_UNROLL
      for (int k = 0; k < kRowsAtOnce; ++k) next[k] = terms.of(row + k, column);
      LOCKSTEP_UNROLL
      for (int k = 0; k < kRowsAtOnce; ++k) sum += next[k];
    }
    for (; row < end; ++row) sum += terms.of(row, column);
    put_sum(to, i, sum);
  }
};

/// One level on the CPU, one sum after another: for levels with few sums.
template <class T>
void sum_level(const T* from, const RowBlocks& blocks, std::int64_t columns, T* to) {
  const SumBlocksFunctor<RowElements<T>, T> functor{{from, columns}, blocks, columns, to};
  for (std::int64_t i = 0; i < blocks.count() * columns; ++i) functor(i);
}

}  // namespace lockstep::device
