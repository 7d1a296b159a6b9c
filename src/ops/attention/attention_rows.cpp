#include "ops/attention/attention_rows.hpp"

#include <algorithm>

#include "core/vectorize.hpp"
#include "device/cpu/softmax.hpp"

namespace lockstep::ops {

namespace {

using device::kLanes;
using device::Lanes;

LOCKSTEP_INLINE std::int64_t visible_columns(const AttentionBlock& block, std::int64_t row) {
  const std::int64_t columns = block.visible + row < block.columns ? block.visible + row : block.columns;
  return columns < 0 ? 0 : columns;
}

/// Loads lanes i, i + 1, ... of a row; those from `columns` on become `rest`. Rows are kAttentionBlock long, so the
/// load stays within the row.
LOCKSTEP_INLINE void load_visible(Lanes& to, const float* row, std::int64_t i, std::int64_t columns, float rest) {
  constexpr device::IntegerLanes kIndex = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  device::load(to, row + i);
  to = kIndex < static_cast<std::int32_t>(columns - i) ? to : Lanes{} + rest;
}

/// Not a loop: the compiler would call memset, which costs more than the few stores.
LOCKSTEP_INLINE void zero_from(float* row, std::int64_t i) {
  static_assert(kAttentionBlock == 4 * kLanes);
  if (i <= 0) device::store(row, Lanes{});
  if (i <= kLanes) device::store(row + kLanes, Lanes{});
  if (i <= 2 * kLanes) device::store(row + 2 * kLanes, Lanes{});
  if (i <= 3 * kLanes) device::store(row + 3 * kLanes, Lanes{});
}

constexpr float kLowest = -__builtin_inff();

LOCKSTEP_INLINE float visible_maximum(const float* row, std::int64_t columns) {
  Lanes best = Lanes{} + kLowest, part;
  for (std::int64_t i = 0; i < columns; i += kLanes) {
    load_visible(part, row, i, columns, kLowest);
    best = part > best ? part : best;
  }
  return device::combine_maximum(best);
}

}  // namespace

LOCKSTEP_VECTORIZED void attention_softmax(float* scores, const AttentionBlock& block, AttentionRows& known,
                                           bool first) {
  for (std::int64_t row = 0; row < block.rows; ++row) {
    float* x = scores + row * kAttentionBlock;
    const std::int64_t columns = visible_columns(block, row);
    const float maximum = device::larger(visible_maximum(x, columns), first ? kLowest : known.maximum[row]);
    Lanes total = {}, part;
    std::int64_t i = 0;
    for (; i < columns; i += kLanes) {
      load_visible(part, x, i, columns, kLowest);  // e^-infinity is 0
      part = device::vector_exp(part - maximum);
      device::store(x + i, part);
      total += part;
    }
    zero_from(x, i);
    const float sum = device::combine(total);
    const float factor = first ? 0.0F : device::vector_exp(known.maximum[row] - maximum);
    known.total[row] = first ? sum : known.total[row] * factor + sum;
    known.rescale[row] = factor;
    known.maximum[row] = maximum;
  }
}

LOCKSTEP_VECTORIZED void scale_rows(float* out, std::int64_t stride, const float* factors, std::int64_t rows,
                                    std::int64_t size) {
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t i = 0; i < size; ++i) out[row * stride + i] *= factors[row];
  }
}

LOCKSTEP_VECTORIZED void finish_rows(float* out, std::int64_t stride, AttentionRows& known, float* log_sums,
                                     std::int64_t rows, std::int64_t size) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const float factor = 1.0F / known.total[row];
    for (std::int64_t i = 0; i < size; ++i) out[row * stride + i] *= factor;
  }
  if (log_sums == nullptr) return;
  device::map(known.total, known.maximum, log_sums, rows,
              [](const Lanes& total, const Lanes& maximum)
                  LOCKSTEP_INLINE_LAMBDA -> Lanes { return device::vector_log(total) + maximum; });
}

LOCKSTEP_VECTORIZED void row_dots(const float* out, const float* dout, std::int64_t stride, float* dots,
                                  std::int64_t rows, std::int64_t size) {
  for (std::int64_t row = 0; row < rows; ++row) dots[row] = device::dot(out + row * stride, dout + row * stride, size);
}

LOCKSTEP_VECTORIZED void attention_gradient(float* scores, float* d, const AttentionBlock& block, const float* log_sums,
                                            const float* dots, float scale) {
  for (std::int64_t row = 0; row < block.rows; ++row) {
    float *p = scores + row * kAttentionBlock, *g = d + row * kAttentionBlock;
    const std::int64_t columns = visible_columns(block, row);
    Lanes x, y;
    std::int64_t i = 0;
    for (; i < columns; i += kLanes) {
      load_visible(x, p, i, columns, kLowest);
      load_visible(y, g, i, columns, 0);
      x = device::vector_exp(x - log_sums[row]);
      device::store(p + i, x);
      device::store(g + i, x * (y - dots[row]) * scale);
    }
    zero_from(p, i);
    zero_from(g, i);
  }
}

}  // namespace lockstep::ops
