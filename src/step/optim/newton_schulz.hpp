// The orthogonal matrix nearest to a given one, about: with M = U S V^T its singular values become about 1, so that it
// turns into about U V^T. Five steps of a polynomial of degree five, whose coefficients push small singular values up
// fast and leave those of the result between about 0.7 and 1.2. On GPUs: newton_schulz_grid.hpp.
// Source: Jordan and others, "Muon: an optimizer for hidden layers in neural networks", 2024; Bernstein and Newhouse,
// "Old optimizer, new norm: an anthology", 2024.
#pragma once

#include <cstdint>
#include <span>

namespace lockstep::optim {

struct NewtonSchulz {
  static constexpr float kA = 3.4445F, kB = -4.7750F, kC = 2.0315F;  ///< x <- a x + (b s + c s s) x, with s = x x^T
  int steps = 5;
  double epsilon = 1e-8;  ///< the matrix is first divided by its norm, or by this if that is larger
  float factor = 1;       ///< of the result
};

/// In place; row-major [rows, columns]. Single-threaded, in fp32, with the same bits on each call.
void orthogonalize(std::span<float> matrix, std::int64_t rows, std::int64_t columns, const NewtonSchulz& how);

/// The floats that it needs besides the matrix.
[[nodiscard]] std::int64_t orthogonalize_floats(std::int64_t rows, std::int64_t columns);

/// Floating-point operations of so many steps of the iteration.
[[nodiscard]] double orthogonalize_operations(std::int64_t rows, std::int64_t columns, int steps);

}  // namespace lockstep::optim
