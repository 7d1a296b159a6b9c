// orthogonalize() (newton_schulz.hpp) on a Grid (device/gpu/grid.hpp), with the bits of a CPU that has fused
// multiply-adds: its products add as gemm does there.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "comm/reduce/gradient_buckets.hpp"
#include "core/divisor.hpp"
#include "core/host_device.hpp"
#include "device/gpu/grid.hpp"
#include "device/row_blocks.hpp"
#include "step/optim/newton_schulz.hpp"
#include "step/optim/newton_schulz_scratch.hpp"
#include "step/optim/update_kernels.hpp"

namespace lockstep::optim {

/// A matrix on a GPU, and memory to make its step.
struct MatrixOnGpu {
  float* values = nullptr;  ///< [rows, columns]: the direction, and then the step
  std::int64_t rows = 0, columns = 0;
  std::byte* scratch = nullptr;  ///< aligned as Gpu::allocate() does; of NewtonSchulzScratch::bytes
};

/// squares[c] = the sum of squares of chunk c.
struct MatrixSquaresFunctor {
  const float* values;
  std::int64_t elements;
  double *lanes, *squares;
  template <class Group>
  LOCKSTEP_HOST_DEVICE void operator()(const Group& group, std::int64_t c) const {
    const std::int64_t first = c * comm::kChunkElements, left = elements - first;
    const float* const chunk = values + first;
    double* const mine = lanes + c * kSquareLanes;
    group.each(kSquareLanes, [&](std::int64_t lane) {
      mine[lane] = SquaresFunctor::sum_of_lane(lane, left < comm::kChunkElements ? left : comm::kChunkElements,
                                               [=](std::int64_t i) { return chunk[i]; });
    });
    group.barrier();
    group.once([&] {
      double sum = 0;
      for (int lane = 0; lane < kSquareLanes; ++lane) sum += mine[lane];
      squares[c] = sum;
    });
  }
};

/// to = from * factor, or its transpose.
struct TurnFunctor {
  const float* from = nullptr;
  float* to = nullptr;
  std::int64_t rows = 0;  ///< of `to`
  Divisor columns;
  bool turned = false;
  const double* square = nullptr;  ///< of the norm by which it is divided; null: it is multiplied by the factor
  double epsilon = 0;
  float factor = 1;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const {
    to[i] = from[turned ? i % columns * rows + i / columns : i] * (square == nullptr ? factor : normalizer());
  }

 private:
  LOCKSTEP_HOST_DEVICE float normalizer() const {
    const double norm = std::sqrt(*square);
    return 1 / (norm < epsilon ? epsilon : norm);
  }
};

/// to = scale * sum + factor * other, element for element.
struct StoreMix {
  float scale, factor;
  const float* other;
  float* to;
  std::int64_t columns;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t /*group*/, std::int64_t row, std::int64_t column, float sum) const {
    const std::int64_t at = row * columns + column;
    to[at] = scale * sum + factor * other[at];
  }
};

template <class Grid>
void orthogonalize_on(GpuStream* stream, const MatrixOnGpu& of, const NewtonSchulz& how) {
  using Lines = device::MatrixLines<float, true>;
  using Columns = device::MatrixLines<float, false>;
  const std::int64_t m = std::min(of.rows, of.columns), n = std::max(of.rows, of.columns);
  const bool is_tall = of.rows > of.columns;
  const NewtonSchulzScratch at(of.scratch, of.rows, of.columns);
  const auto multiply = [&](std::int64_t columns, std::int64_t depth, const float* left, const auto& right,
                            const auto& store) {
    Grid::product(stream,
                  device::product_of<device::SumOrder::fused>(1, m, columns, depth, Lines(left, depth), right, store));
  };
  Grid::rows(stream, at.chunks, MatrixSquaresFunctor{of.values, m * n, at.lanes, at.squares});
  device::for_levels_of(at.squares, at.chunks, 1, at.total, at.levels,
                        [&](const double* from, const device::RowBlocks& blocks, double* to) {
                          Grid::each(stream, blocks.count(), SumSquaresFunctor{{from, 1}, blocks, 1, to});
                        });
  float *x = at.x, *next = at.next;
  Grid::each(stream, m * n, TurnFunctor{of.values, x, m, Divisor(n), is_tall, at.total, how.epsilon, 0});
  for (int step = 0; step < how.steps; ++step) {
    multiply(m, n, x, Lines(x, n), device::StoreElement<float>{nullptr, at.square, m});
    multiply(m, m, at.square, Columns(at.square, m),
             StoreMix{NewtonSchulz::kC, NewtonSchulz::kB, at.square, at.mixed, m});
    multiply(n, m, at.mixed, Columns(x, n), StoreMix{1, NewtonSchulz::kA, x, next, n});
    std::swap(x, next);
  }
  Grid::each(stream, m * n, TurnFunctor{x, of.values, of.rows, Divisor(of.columns), is_tall, nullptr, 0, how.factor});
}

}  // namespace lockstep::optim
