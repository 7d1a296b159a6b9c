#include "step/optim/newton_schulz.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "comm/reduce/gradient_buckets.hpp"
#include "core/round_up.hpp"
#include "core/vectorize.hpp"
#include "device/cpu/gemm.hpp"
#include "device/row_blocks.hpp"
#include "step/optim/elementwise.hpp"

namespace lockstep::optim {

namespace {

LOCKSTEP_VECTORIZED void multiply_all(float* values, float factor, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) values[i] *= factor;
}
/// out = scale * out + factor * values
LOCKSTEP_VECTORIZED void mix_into(float* out, float scale, float factor, const float* values, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = scale * out[i] + factor * values[i];
}
LOCKSTEP_VECTORIZED double square_of_chunk(const float* values, std::int64_t n) {
  return optim::sum_of_squares(n, [&](std::int64_t i) LOCKSTEP_INLINE_LAMBDA { return values[i]; });
}

/// Chunk by chunk, as the norm of the gradient.
double norm_of_matrix(std::span<const float> values) {
  const std::int64_t n = std::ssize(values), chunks = divide_up(n, comm::kChunkElements);
  std::vector<double> squares(chunks), levels(device::scratch_rows(chunks));
  for (std::int64_t c = 0; c < chunks; ++c) {
    const std::int64_t first = c * comm::kChunkElements;
    squares[c] = square_of_chunk(values.data() + first, std::min(comm::kChunkElements, n - first));
  }
  double sum = 0;
  device::for_levels_of(
      squares.data(), chunks, 1, &sum, levels.data(),
      [](const double* from, const device::RowBlocks& blocks, double* to) { device::sum_level(from, blocks, 1, to); });
  return std::sqrt(sum);
}

void turn(const float* from, std::int64_t rows, std::int64_t columns, float* to) {
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) to[j * rows + i] = from[i * columns + j];
  }
}

}  // namespace

std::int64_t orthogonalize_floats(std::int64_t rows, std::int64_t columns) {
  const std::int64_t m = std::min(rows, columns);
  return 2 * rows * columns + 2 * m * m;
}

double orthogonalize_operations(std::int64_t rows, std::int64_t columns, int steps) {
  const double m = std::min(rows, columns), n = std::max(rows, columns);
  return steps * (4 * m * m * n + 2 * m * m * m);
}

void orthogonalize(std::span<float> matrix, std::int64_t rows, std::int64_t columns, const NewtonSchulz& how) {
  const std::int64_t m = std::min(rows, columns), n = std::max(rows, columns);
  const bool is_tall = rows > columns;  // the smaller side is multiplied with itself
  std::vector<float> x(matrix.size()), next(matrix.size()), square(m * m), mixed(square.size());
  const float normalizer = 1 / std::max(norm_of_matrix(matrix), how.epsilon);
  if (is_tall) {
    turn(matrix.data(), rows, columns, x.data());
  } else {
    std::copy(matrix.begin(), matrix.end(), x.begin());
  }
  multiply_all(x.data(), normalizer, m * n);
  for (int step = 0; step < how.steps; ++step) {
    device::gemm(m, m, n, {x.data(), n, false}, {x.data(), n, true}, {square.data(), m});
    device::gemm(m, m, m, {square.data(), m, false}, {square.data(), m, false}, {mixed.data(), m});
    mix_into(mixed.data(), NewtonSchulz::kC, NewtonSchulz::kB, square.data(), m * m);
    device::gemm(m, n, m, {mixed.data(), m, false}, {x.data(), n, false}, {next.data(), n});
    mix_into(next.data(), 1, NewtonSchulz::kA, x.data(), m * n);
    x.swap(next);
  }
  if (is_tall) {
    turn(x.data(), columns, rows, matrix.data());
  } else {
    std::copy(x.begin(), x.end(), matrix.begin());
  }
  multiply_all(matrix.data(), how.factor, m * n);
}

}  // namespace lockstep::optim
