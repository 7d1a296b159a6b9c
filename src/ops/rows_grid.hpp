// Sums over rows on a Grid, in the order of device/row_blocks.hpp, and the sums of that kind that norms over rows need.
#pragma once

#include <cstdint>

#include "device/gpu/grid.hpp"
#include "device/row_blocks.hpp"

namespace lockstep::ops {

/// total[columns] = sum over rows of terms.of(row, column); scratch is [scratch_rows(rows), columns].
template <class Grid, class T, class Terms>
void launch_row_sums(GpuStream* stream, const Terms& terms, std::int64_t rows, std::int64_t columns, T* total,
                     T* scratch) {
  using device::RowBlocks;
  const auto launch = [&]<class Added>(const Added& added, const RowBlocks& blocks, T* to) {
    Grid::each(stream, blocks.count() * columns, device::SumBlocksFunctor<Added, T>{added, blocks, columns, to});
  };
  device::for_levels(
      rows, columns, total, scratch, [&](const RowBlocks& blocks, T* to) { launch(terms, blocks, to); },
      [&](const T* from, const RowBlocks& blocks, T* to) {
        launch(device::RowElements<T>{from, columns}, blocks, to);
      });
}

/// dy * z, with z = (x - mean) * scale, or x * scale without means.
template <class T>
struct ScaleGradients {
  const T *x, *dy;
  const float *means, *scales;  ///< [rows]
  std::int64_t columns;
  LOCKSTEP_HOST_DEVICE float of(std::int64_t row, std::int64_t column) const {
    const std::int64_t at = row * columns + column;
    const float centered = means == nullptr ? x[at] : x[at] - means[row];
    return dy[at] * (centered * scales[row]);
  }
};

}  // namespace lockstep::ops
