#include "ops/attention/attention_rows.hpp"

#include <algorithm>

#include "backend/cpu/softmax.hpp"
#include "core/vectorize.hpp"

namespace lockstep::ops {

namespace {

using backend::kLanes;
using backend::Lanes;

LOCKSTEP_INLINE std::int64_t visible_columns(const AttentionBlock& block, std::int64_t row) {
  const std::int64_t columns = block.visible + row < block.columns ? block.visible + row : block.columns;
  return columns < 0 ? 0 : columns;
}

/// Fills row[from, kAttentionBlock).
LOCKSTEP_INLINE void fill(float* row, std::int64_t from, float value) {
  for (std::int64_t i = from; i < kAttentionBlock; ++i) row[i] = value;
}

}  // namespace

LOCKSTEP_VECTORIZED void attention_softmax(float* scores, const AttentionBlock& block, AttentionRows& known, bool first) {
  constexpr float kLowest = -__builtin_inff();
  for (std::int64_t row = 0; row < block.rows; ++row) {
    float* x = scores + row * kAttentionBlock;
    const std::int64_t columns = visible_columns(block, row);
    const std::int64_t padded = (columns + kLanes - 1) / kLanes * kLanes;
    fill(x, columns, kLowest);  // e^-infinity is 0: whole lanes need no tail
    const float here = backend::maximum(x, padded), before = first ? kLowest : known.maximum[row];
    const float maximum = here > before ? here : before;
    const float sum = backend::exponentials(x, x, padded, maximum);
    fill(x, padded, 0);
    const float factor = first ? 0.0F : backend::vector_exp(before - maximum);
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
  backend::map(known.total, known.maximum, log_sums, rows,
               [](const Lanes& total, const Lanes& maximum)
                   LOCKSTEP_INLINE_LAMBDA -> Lanes { return backend::vector_log(total) + maximum; });
}

LOCKSTEP_VECTORIZED void row_dots(const float* out, const float* dout, std::int64_t stride, float* dots,
                                  std::int64_t rows, std::int64_t size) {
  for (std::int64_t row = 0; row < rows; ++row) dots[row] = backend::dot(out + row * stride, dout + row * stride, size);
}

LOCKSTEP_VECTORIZED void attention_gradient(float* scores, float* d, const AttentionBlock& block, const float* log_sums,
                                            const float* dots, float scale) {
  for (std::int64_t row = 0; row < block.rows; ++row) {
    float *p = scores + row * kAttentionBlock, *g = d + row * kAttentionBlock;
    const std::int64_t columns = visible_columns(block, row);
    const std::int64_t padded = (columns + kLanes - 1) / kLanes * kLanes;
    fill(p, columns, -__builtin_inff());
    fill(g, columns, 0);
    Lanes x, y;
    for (std::int64_t i = 0; i < padded; i += kLanes) {
      backend::load(x, p + i);
      backend::load(y, g + i);
      x = backend::vector_exp(x - log_sums[row]);
      backend::store(p + i, x);
      backend::store(g + i, x * (y - dots[row]) * scale);
    }
    fill(p, padded, 0);
  }
}

}  // namespace lockstep::ops
