#include "optim/newton_schulz.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/vectorize.hpp"
#include "device/cpu/gemm.hpp"
#include "optim/elementwise.hpp"

namespace lockstep::optim {

namespace {

constexpr float kA = 3.4445F, kB = -4.7750F, kC = 2.0315F;

LOCKSTEP_VECTORIZED void multiply_all(float* values, float factor, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) values[i] *= factor;
}
/// out = out + factor * values
LOCKSTEP_VECTORIZED void add_scaled(float* out, float factor, const float* values, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) out[i] += factor * values[i];
}
LOCKSTEP_VECTORIZED double norm_of_all(const float* values, std::int64_t n) {
  return std::sqrt(optim::sum_of_squares(n, [&](std::int64_t i) LOCKSTEP_INLINE_LAMBDA { return values[i]; }));
}

void turn(const float* from, std::int64_t rows, std::int64_t columns, float* to) {
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) to[j * rows + i] = from[i * columns + j];
  }
}

}  // namespace

void orthogonalize(std::span<float> matrix, std::int64_t rows, std::int64_t columns, int steps, double epsilon) {
  const std::int64_t m = std::min(rows, columns), n = std::max(rows, columns);
  const bool is_tall = rows > columns;  // the smaller side is multiplied with itself
  std::vector<float> x(matrix.size()), next(matrix.size()), square(static_cast<std::size_t>(m * m)),
      mixed(square.size());
  if (is_tall) {
    turn(matrix.data(), rows, columns, x.data());
  } else {
    std::copy(matrix.begin(), matrix.end(), x.begin());
  }
  multiply_all(x.data(), static_cast<float>(1 / std::max(norm_of_all(x.data(), m * n), epsilon)), m * n);
  for (int step = 0; step < steps; ++step) {  // x <- a x + (b s + c s s) x, with s = x x^T
    device::gemm(m, m, n, {x.data(), n, false}, {x.data(), n, true}, {square.data(), m});
    device::gemm(m, m, m, {square.data(), m, false}, {square.data(), m, false}, {mixed.data(), m, false, kC});
    add_scaled(mixed.data(), kB, square.data(), m * m);
    device::gemm(m, n, m, {mixed.data(), m, false}, {x.data(), n, false}, {next.data(), n});
    add_scaled(next.data(), kA, x.data(), m * n);
    x.swap(next);
  }
  if (is_tall) {
    turn(x.data(), columns, rows, matrix.data());
  } else {
    std::copy(x.begin(), x.end(), matrix.begin());
  }
}

}  // namespace lockstep::optim
