// The loops of attention over a block of scores [rows, kAttentionBlock], row-major.
#pragma once

#include <cstdint>

namespace lockstep::ops {

inline constexpr std::int64_t kAttentionBlock = 64;  ///< queries or keys in a block

/// The state of each query's row after some blocks of keys.
struct AttentionRows {
  float maximum[kAttentionBlock];
  float total[kAttentionBlock];    ///< sum of e^(score - maximum)
  float rescale[kAttentionBlock];  ///< the factor that the last block applied to older sums
};

struct AttentionBlock {
  std::int64_t rows = 0, columns = 0;
  std::int64_t visible = 0;  ///< columns visible to row 0, and one more for each next row; may be negative
};

/// Turns scores into e^(score - maximum), 0 where not visible, and updates `known`. `first`: nothing is known yet.
void attention_softmax(float* scores, const AttentionBlock& block, AttentionRows& known, bool first);

/// Multiplies each row of out[rows, size] by its factor.
void scale_rows(float* out, std::int64_t stride, const float* factors, std::int64_t rows, std::int64_t size);

/// Divides each row of out by its total, and writes log(total) + maximum.
void finish_rows(float* out, std::int64_t stride, AttentionRows& known, float* log_sums, std::int64_t rows,
                 std::int64_t size);

/// dots[row] = sum of out * dout.
void row_dots(const float* out, const float* dout, std::int64_t stride, float* dots, std::int64_t rows,
              std::int64_t size);

/// Turns scores into probabilities e^(score - log_sum), and d into the gradient of the score: scale * p * (d - dot).
void attention_gradient(float* scores, float* d, const AttentionBlock& block, const float* log_sums, const float* dots,
                        float scale);

}  // namespace lockstep::ops
