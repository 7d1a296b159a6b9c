// The orthogonal matrix nearest to a given one, about: with M = U S V^T its singular values become about 1, so that it
// turns into about U V^T. Five steps of a polynomial of degree five, whose coefficients push small singular values up
// fast and leave those of the result between about 0.7 and 1.2.
// Source: Jordan and others, "Muon: an optimizer for hidden layers in neural networks", 2024; Bernstein and Newhouse,
// "Old optimizer, new norm: an anthology", 2024.
#pragma once

#include <cstdint>
#include <span>

namespace lockstep::optim {

/// In place; row-major [rows, columns]. Single-threaded, in fp32, with the same bits on each call. The matrix is first
/// divided by its norm, or by `epsilon` if that is larger.
void orthogonalize(std::span<float> matrix, std::int64_t rows, std::int64_t columns, int steps, double epsilon);

}  // namespace lockstep::optim
