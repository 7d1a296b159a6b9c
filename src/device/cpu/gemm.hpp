// Single-precision matrix product for kernels: row-major, single-threaded, with the same bits on each call and each
// thread. An element is a chain of multiply-adds over k (fused if the instruction set has it), cut into blocks of
// kGemmDepth; so a row of the result depends neither on the number of rows nor on packing.
#pragma once

#include <cstdint>

#include "lockstep/tensor.hpp"

namespace lockstep::device {

inline constexpr std::int64_t kGemmDepth = 256;

/// A row-major matrix in memory; `transposed`: the product uses its transpose.
struct MatrixView {
  const float* data = nullptr;
  std::int64_t stride = 0;  ///< elements from one row in memory to the next
  bool transposed = false;
};

/// Where the product is written: c = scale * product, or c += scale * product.
struct MatrixResult {
  float* data = nullptr;
  std::int64_t stride = 0;
  bool add = false;
  float scale = 1;
};

/// A matrix of which row i has only columns j < i + visible. `left`: a as stored; the rest of it is 0. `result`: c; the
/// rest of it is not needed and may keep its values. The rest is skipped where that is easy.
struct Band {
  enum class Of : std::uint8_t { nothing, left, result } of = Of::nothing;
  std::int64_t visible = 0;
};

/// The right factor b[k, n] in the order in which gemm reads it, for factors that are used many times.
class PackedMatrix {
 public:
  PackedMatrix() = default;
  PackedMatrix(std::int64_t k, std::int64_t n);
  /// For a factor of this size.
  [[nodiscard]] static std::size_t bytes(std::int64_t k, std::int64_t n);
  void pack(MatrixView b);
  std::int64_t rows() const { return k_; }
  std::int64_t columns() const { return n_; }
  /// The rows of one block of kGemmDepth starting at `row`, and the panel of columns starting at `column`.
  const float* panel(std::int64_t row, std::int64_t column) const;

 private:
  float* place(std::int64_t row, std::int64_t column) const;

  std::int64_t k_ = 0, n_ = 0;
  AlignedBytes bytes_;
};

/// c[m, n] = a[m, k] * b[k, n]. Sizes may be 0. c must not overlap a or b.
void gemm(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView a, MatrixView b, MatrixResult c, Band band = {});
void gemm(std::int64_t m, MatrixView a, const PackedMatrix& b, MatrixResult c);

}  // namespace lockstep::device
