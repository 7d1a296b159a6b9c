// A matrix product as cuBLAS sees it: column-major.
#pragma once

#include <cstdint>

namespace lockstep::device {

/// A matrix in memory: element (i, j) is data[i + j * step()]. `transposed`: the product uses its transpose.
struct ColumnMatrix {
  std::int64_t rows = 0, columns = 0;  ///< as stored
  bool transposed = false;
  std::int64_t gap = 0;  ///< elements between columns
  constexpr std::int64_t step() const { return rows + gap; }
};

/// d[m, n] = a[m, k] * b[k, n]; d has no gaps between columns.
struct ColumnProduct {
  ColumnMatrix a, b;
  constexpr std::int64_t m() const { return a.transposed ? a.columns : a.rows; }
  constexpr std::int64_t n() const { return b.transposed ? b.rows : b.columns; }
  constexpr std::int64_t k() const { return a.transposed ? a.rows : a.columns; }
};

}  // namespace lockstep::device
