// The memory that orthogonalize_on() needs on a GPU (newton_schulz_grid.hpp).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "comm/reduce/gradient_buckets.hpp"
#include "core/round_up.hpp"
#include "device/row_blocks.hpp"
#include "step/optim/elementwise.hpp"

namespace lockstep::optim {

/// Where the numbers of the iteration are.
struct NewtonSchulzScratch {
  std::int64_t chunks = 0;  ///< of the matrix
  double *total = nullptr, *squares = nullptr,
         *lanes = nullptr;                    ///< of the norm: one; by chunk; [chunks, kSquareLanes]
  double* levels = nullptr;                   ///< sums of blocks of squares
  float *x = nullptr, *next = nullptr;        ///< [m, n]
  float *square = nullptr, *mixed = nullptr;  ///< [m, m]
  std::size_t bytes = 0;

  /// `memory`: null if only the bytes are wanted.
  NewtonSchulzScratch(std::byte* memory, std::int64_t rows, std::int64_t columns)
      : chunks(divide_up(rows * columns, comm::kChunkElements)) {
    const std::int64_t m = std::min(rows, columns);
    const auto place = [&]<class T>(T*& at, std::int64_t count) {
      at = memory == nullptr ? nullptr : reinterpret_cast<T*>(memory + bytes);
      bytes += round_up(count * sizeof(T), std::size_t{64});
    };
    place(total, 1);
    place(squares, chunks);
    place(lanes, chunks * kSquareLanes);
    place(levels, device::scratch_rows(chunks));
    place(x, rows * columns);
    place(next, rows * columns);
    place(mixed, m * m);
    place(square, m * m);  // the last one: rows behind the end of its product would be outside of this memory
  }
};

}  // namespace lockstep::optim
