#include <fmt/format.h>

#include "ops/rows.hpp"

#include "core/vectorize.hpp"
#include "lockstep/error.hpp"

namespace lockstep::ops {

namespace {

using device::RowBlocks;

/// sums[i] += term(row, i) of rows `first` to `first + kRows - 1`, in order.
template <int kRows, class Term>
LOCKSTEP_INLINE void add_rows(std::int64_t first, std::int64_t columns, float* __restrict sums, const Term& term) {
  for (std::int64_t i = 0; i < columns; ++i) {
    float sum = sums[i];
#pragma GCC unroll 4
    for (int row = 0; row < kRows; ++row) sum += term(first + row, i);
    sums[i] = sum;
  }
}

/// Block by block, with four rows per pass over the block's sums: these stay in the first-level cache, and rows are
/// read in memory order.
template <class Term>
LOCKSTEP_INLINE void sum_blocks(const RowBlocks& blocks, std::int64_t columns, float* to, const Term& term) {
  for (std::int64_t block = 0; block < blocks.count(); ++block) {
    float* const sums = to + block * columns;
    for (std::int64_t i = 0; i < columns; ++i) sums[i] = 0;
    const std::int64_t end = blocks.end(block);
    std::int64_t row = blocks.begin(block);
    for (; row + 4 <= end; row += 4) add_rows<4>(row, columns, sums, term);
    for (; row < end; ++row) add_rows<1>(row, columns, sums, term);
  }
}

LOCKSTEP_VECTORIZED void sum_blocks_of_rows(const float* x, const RowBlocks& blocks, std::int64_t columns, float* to) {
  sum_blocks(blocks, columns, to,
             [=](std::int64_t row, std::int64_t i) LOCKSTEP_INLINE_LAMBDA { return x[row * columns + i]; });
}

LOCKSTEP_VECTORIZED void sum_blocks_of_centered(const NormedRows& of, const RowBlocks& blocks, float* to) {
  const float *x = of.x, *dy = of.dy, *means = of.means, *scales = of.scales;
  const std::int64_t n = of.columns;
  sum_blocks(blocks, n, to, [=](std::int64_t row, std::int64_t i) LOCKSTEP_INLINE_LAMBDA {
    return dy[row * n + i] * ((x[row * n + i] - means[row]) * scales[row]);
  });
}

LOCKSTEP_VECTORIZED void sum_blocks_of_scaled(const NormedRows& of, const RowBlocks& blocks, float* to) {
  const float *x = of.x, *dy = of.dy, *scales = of.scales;
  const std::int64_t n = of.columns;
  sum_blocks(blocks, n, to, [=](std::int64_t row, std::int64_t i) LOCKSTEP_INLINE_LAMBDA {
    return dy[row * n + i] * (x[row * n + i] * scales[row]);
  });
}

/// `first`: see for_levels.
template <class First>
void sum_in_levels(std::int64_t rows, std::int64_t columns, float* total, void* scratch, const First& first) {
  device::for_levels(
      rows, columns, total, static_cast<float*>(scratch), first,
      [=](const float* from, const RowBlocks& blocks, float* to) { sum_blocks_of_rows(from, blocks, columns, to); });
}

}  // namespace

void sum_rows(const float* x, std::int64_t rows, std::int64_t columns, float* total, void* scratch) {
  sum_in_levels(rows, columns, total, scratch,
                [=](const RowBlocks& blocks, float* to) { sum_blocks_of_rows(x, blocks, columns, to); });
}

void sum_scale_gradients(const NormedRows& of, float* total, void* scratch) {
  const auto level = of.means != nullptr ? sum_blocks_of_centered : sum_blocks_of_scaled;
  sum_in_levels(of.rows, of.columns, total, scratch,
                [&](const RowBlocks& blocks, float* to) { level(of, blocks, to); });
}

void expect_rows(const std::string& op, const TensorSpec& input) {
  if (input.dtype == DType::f32 && input.shape.size() >= 2) return;
  throw Error(ExitCode::configuration,
              fmt::format("{}: expected an input [batch, ..., features] of f32, found {} of {}", op,
                          to_string(input.shape), name_of(input.dtype)));
}

}  // namespace lockstep::ops
