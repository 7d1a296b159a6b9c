// Loops of batch norm over [rows, channels].
#pragma once

#include <cstdint>

namespace lockstep::ops {

/// Rows of a block that fits into the first-level cache; depends only on the channels.
[[nodiscard]] std::int64_t rows_per_block(std::int64_t channels);

/// Mean and sum of squared deviations of each channel over a block.
void block_moments(const float* x, std::int64_t rows, std::int64_t channels, float* mean, float* squares);

/// y = (x - mean) * scale + shift, or relu of that.
void normalize(const float* x, const float* mean, const float* scale, const float* shift, float* y, std::int64_t rows,
               std::int64_t channels, bool relu);

/// The gradient of normalize()'s output. If `relu_output` is given, it counts as 0 where that is 0.
struct OutputGradient {
  const float* dy = nullptr;
  const float* relu_output = nullptr;
};

/// Sums over a block of dy and of dy * (x - mean).
void block_gradient_sums(const float* x, OutputGradient gradient, const float* mean, std::int64_t rows,
                         std::int64_t channels, float* sum, float* product);

/// dx = a * dy + b * (x - mean) + c
void normalize_gradient(const float* x, OutputGradient gradient, const float* mean, const float* a, const float* b,
                        const float* c, float* dx, std::int64_t rows, std::int64_t channels);

}  // namespace lockstep::ops
