// The loops of attention over a block of scores [rows, kAttentionBlock], row-major.
#pragma once

#include <cstdint>

namespace lockstep::ops {

inline constexpr std::int64_t kAttentionBlock = 64;  ///< queries, and keys, of a block

/// What is known of a query's row after some blocks of keys.
struct AttentionRows {
  float maximum[kAttentionBlock];
  float total[kAttentionBlock];    ///< sum of e^(score - maximum)
  float rescale[kAttentionBlock];  ///< what the last block multiplied older sums by
};

struct AttentionBlock {
  std::int64_t rows = 0, columns = 0;
  std::int64_t visible = 0;  ///< columns that row 0 sees, each next row one more; may be negative
};

/// scores become e^(score - maximum), 0 where not visible; `known` takes them in. `first`: nothing is known yet.
void attention_softmax(float* scores, const AttentionBlock& block, AttentionRows& known, bool first);

/// Each row of out[rows, size] times its factor.
void scale_rows(float* out, std::int64_t stride, const float* factors, std::int64_t rows, std::int64_t size);

/// Divides each row of out by its total, and writes log(total) + maximum.
void finish_rows(float* out, std::int64_t stride, AttentionRows& known, float* log_sums, std::int64_t rows,
                 std::int64_t size);

/// dots[row] = sum of out * dout.
void row_dots(const float* out, const float* dout, std::int64_t stride, float* dots, std::int64_t rows,
              std::int64_t size);

/// scores become probabilities e^(score - log_sum), and d their gradients' products: scale * p * (d - dot).
void attention_gradient(float* scores, float* d, const AttentionBlock& block, const float* log_sums, const float* dots,
                        float scale);

}  // namespace lockstep::ops
