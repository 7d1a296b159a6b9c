// The functors of adafactor's kernels on a GPU, with the CPU's bits: optimizers/adafactor.hpp has the formula and the
// orders of sums. Each is launched once for all matrices, or all chunks, of a group of parameters:
//
//   CopyGradientFunctor     by chunk   where kernels need a copy of the gradient
//   TileSquaresFunctor      by tile    squares by row and by column, of a gradient that is read once
//   MatrixMomentsFunctor    by strip   moments of rows or columns
//   RowMeanFunctor          by matrix
//   StepSquaresFunctor      by chunk   norms of parameters and steps, for TrustFunctor (adafactor_step_kernels.hpp)
//   AdafactorUpdateFunctor  by chunk
//
// No step is kept: it follows from the gradient and the moments wherever it is needed. So a gradient is read once for
// the moments, and with its parameter once for the norms and once for the update.
#pragma once

#include <cstdint>

#include "core/divisor.hpp"
#include "core/host_device.hpp"
#include "device/gpu/grid.hpp"
#include "lockstep/tensor.hpp"
#include "step/optim/matrix_kernels.hpp"
#include "step/optim/optimizers/adafactor.hpp"
#include "step/optim/update_kernels.hpp"

namespace lockstep::optim {

static_assert(kFactoredLanes == device::kGroupLanes && kFactoredPack == kPack, "orders of sums that groups have");

/// A matrix on a GPU.
struct AdafactorMatrix {
  float* gradient = nullptr;  ///< [rows, columns], in the model's order: the gradient itself, or a copy
  bool is_copy = false;       ///< which is clipped
  std::int32_t group = 0;
  std::int64_t rows = 0;
  Divisor columns{1};
  double* row_sums = nullptr;     ///< of squares, by tile: [column tiles, rows]
  double* column_sums = nullptr;  ///< [row tiles, columns]
  float *row_moments = nullptr, *column_moments = nullptr;
  float* divisor = nullptr;  ///< of row moments
};

/// Where a tile begins.
struct AdafactorTile {
  std::int64_t row = 0, column = 0;
  std::int32_t matrix = 0;
};

/// As many moments as a group has lanes, or fewer.
struct MomentStrip {
  std::int64_t first = 0;
  std::int32_t matrix = 0;
  bool of_columns = false;
};

/// A chunk of a parameter that this rank updates.
struct AdafactorChunk {
  MatrixChunk of;            ///< its direction is the gradient: that itself, or a copy
  float* moments = nullptr;  ///< of a vector: address of the tensor's first one, which may not be here; null: a matrix
  std::int32_t matrix = 0;   ///< of a vector: the last one, which is empty
  std::int32_t number = 0;   ///< the parameter's
};

struct AdafactorOperands {
  UpdateOperands update;
  Adafactor formula;  ///< of parameters that decay
  const AdafactorMatrix* matrices;
  /// Whether a kernel changes what is of this group.
  LOCKSTEP_HOST_DEVICE bool takes(std::int32_t group) const {
    return group == update.group && !is_set(update.overflow);
  }
};

/// Up to a pack's elements; the others are 0. `aligned`: a whole pack is read at once.
LOCKSTEP_HOST_DEVICE inline FloatPack read_up_to(std::int64_t count, const float* from, bool aligned) {
  if (aligned && count >= kPack) return device::read_pack<kPack>(from);
  FloatPack pack{};
  LOCKSTEP_UNROLL
  for (int k = 0; k < kPack; ++k) {
    if (k < count) pack.at[k] = from[k];
  }
  return pack;
}
LOCKSTEP_HOST_DEVICE inline void write_up_to(std::int64_t count, float* to, const FloatPack& pack, bool aligned) {
  if (aligned && count >= kPack) return device::write_pack(to, pack);
  LOCKSTEP_UNROLL
  for (int k = 0; k < kPack; ++k) {
    if (k < count) to[k] = pack.at[k];
  }
}

/// value(0) + value(1) ... in order; a thread reads several before it adds the first.
template <class Value>
LOCKSTEP_HOST_DEVICE double sum_in_order(std::int64_t n, const Value& value) {
  double sum = 0;
  std::int64_t i = 0;
  for (; i + device::kAhead <= n; i += device::kAhead) {
    double values[device::kAhead];
    LOCKSTEP_UNROLL
    for (int k = 0; k < device::kAhead; ++k) values[k] = value(i + k);
    LOCKSTEP_UNROLL
    for (int k = 0; k < device::kAhead; ++k) sum += values[k];
  }
  for (; i < n; ++i) sum += value(i);
  return sum;
}

/// Clips the gradient of a chunk, and copies it to where the whole matrix is.
struct CopyGradientFunctor {
  AdafactorOperands of;
  const AdafactorChunk* chunks;
  template <class Group>
  LOCKSTEP_HOST_DEVICE void operator()(const Group& group, std::int64_t c) const {
    const AdafactorChunk& chunk = chunks[c];
    const MeasuredChunk& measured = chunk.of.of;
    if (!of.takes(measured.group) || chunk.moments != nullptr || !of.matrices[chunk.matrix].is_copy) return;
    const float factor = of.update.factor();
    const NormChunk at = measured.at;
    float *const gradient = of.update.gradient, *const copy = chunk.of.direction + at.first;
    group.each(
        at.elements, [=](std::int64_t i) { return gradient[at.place(i)]; },
        [=](std::int64_t i, float value) {
          if (factor < 1) gradient[at.place(i)] = value *= factor;
          copy[i] = value;
        });
  }
};

/// What a lane has of a tile: neighbouring columns, some rows at a time.
struct TileLane {
  static constexpr int kRows = 8;
  FloatPack rows[kRows];  ///< gradients, and then their squares
  double column_sums[kPack];
  float row_sum;
  // For Group::read() and Group::sum().
  template <class Use>
  LOCKSTEP_HOST_DEVICE void read(int lane, int /*n*/, const Use& use) {
    use(lane, *this);
  }
  template <class Term>
  LOCKSTEP_HOST_DEVICE float sum(int /*lane*/, int /*n*/, const Term& term) const {
    return term(*this);
  }
};

/// Clips the gradient where it is no copy, and adds the squares of a tile.
struct TileSquaresFunctor {
  AdafactorOperands of;
  const AdafactorTile* tiles;
  template <class Group>
  LOCKSTEP_HOST_DEVICE void operator()(const Group& group, std::int64_t t) const {
    const AdafactorTile tile = tiles[t];
    const AdafactorMatrix matrix = of.matrices[tile.matrix];
    if (!of.takes(matrix.group)) return;
    const float factor = matrix.is_copy ? 1 : of.update.factor();
    const std::int64_t left = matrix.rows - tile.row, rows = left < kFactoredTile ? left : kFactoredTile;
    typename Group::template Row<TileLane> lanes{};
    for (std::int64_t first = 0; first < rows; first += kFactoredLanes) {
      LOCKSTEP_UNROLL
      for (int at = 0; at < kFactoredLanes; at += TileLane::kRows) {
        group.read(lanes, 0, [&](int lane, TileLane& own) {
          take(matrix, tile, lane, {tile.row + first + at, tile.row + rows}, factor, own);
        });
        LOCKSTEP_UNROLL
        for (int k = 0; k < TileLane::kRows; ++k) {
          const float sum = group.sum(lanes, 0, [&](const TileLane& own) { return sum_of_pack(own.rows[k].at); });
          group.read(lanes, 0, [&](int lane, TileLane& own) { own.row_sum = lane == at + k ? sum : own.row_sum; });
        }
      }
      double* const to = matrix.row_sums + tile.column / kFactoredTile * matrix.rows + tile.row + first;
      group.read(lanes, 0, [&](int lane, const TileLane& own) {
        if (first + lane < rows) to[lane] = own.row_sum;
      });
    }
    const std::int64_t columns = matrix.columns.value();
    double* const to = matrix.column_sums + tile.row / kFactoredTile * columns + tile.column;
    group.read(lanes, 0, [&](int lane, const TileLane& own) {
      LOCKSTEP_UNROLL
      for (int k = 0; k < kPack; ++k) {
        const int column = lane * kPack + k;
        if (tile.column + column < columns) to[column] = own.column_sums[k];
      }
    });
  }

 private:
  struct Rows {
    std::int64_t first, end;
  };
  /// A lane's squares of the next rows; those behind the end are 0.
  static LOCKSTEP_HOST_DEVICE void take(const AdafactorMatrix& matrix, const AdafactorTile& tile, int lane, Rows at,
                                        float factor, TileLane& own) {
    const std::int64_t columns = matrix.columns.value(), column = tile.column + std::int64_t{lane} * kPack;
    const bool aligned = columns % kPack == 0;
    const auto count_of = [&](int k) { return at.first + k < at.end ? columns - column : 0; };
    float* const first = matrix.gradient + at.first * columns + column;
    LOCKSTEP_UNROLL
    for (int k = 0; k < TileLane::kRows; ++k) own.rows[k] = read_up_to(count_of(k), first + k * columns, aligned);
    if (factor < 1) {
      LOCKSTEP_UNROLL
      for (int k = 0; k < TileLane::kRows; ++k) {
        LOCKSTEP_UNROLL
        for (float& one : own.rows[k].at) one *= factor;
        write_up_to(count_of(k), first + k * columns, own.rows[k], aligned);
      }
    }
    LOCKSTEP_UNROLL
    for (FloatPack& row : own.rows) {
      LOCKSTEP_UNROLL
      for (int i = 0; i < kPack; ++i) {
        row.at[i] *= row.at[i];
        own.column_sums[i] += row.at[i];
      }
    }
  }
};

/// Updates moments by the sums of tiles.
struct MatrixMomentsFunctor {
  AdafactorOperands of;
  const MomentStrip* strips;
  template <class Group>
  LOCKSTEP_HOST_DEVICE void operator()(const Group& group, std::int64_t s) const {
    const MomentStrip strip = strips[s];
    const AdafactorMatrix& matrix = of.matrices[strip.matrix];
    if (!of.takes(matrix.group)) return;
    const std::int64_t columns = matrix.columns.value();
    const std::int64_t width = strip.of_columns ? columns : matrix.rows;
    const std::int64_t count = strip.of_columns ? matrix.rows : columns;  // of squares in a mean
    const std::int64_t tiles = (count + kFactoredTile - 1) / kFactoredTile, left = width - strip.first;
    const double* const sums = (strip.of_columns ? matrix.column_sums : matrix.row_sums) + strip.first;
    float* const moments = (strip.of_columns ? matrix.column_moments : matrix.row_moments) + strip.first;
    group.each(left < kFactoredLanes ? left : kFactoredLanes, [=, this](std::int64_t i) {
      const double sum = sum_in_order(tiles, [=](std::int64_t tile) { return sums[tile * width + i]; });
      moments[i] = of.formula.moment(moments[i], sum, count);
    });
  }
};

struct RowMeanFunctor {
  AdafactorOperands of;
  template <class Group>
  LOCKSTEP_HOST_DEVICE void operator()(const Group& group, std::int64_t m) const {
    const AdafactorMatrix& matrix = of.matrices[m];
    if (!of.takes(matrix.group)) return;
    const float* const moments = matrix.row_moments;
    const std::int64_t rows = matrix.rows;
    const float mean = group.sum(kFactoredLanes, [=](std::int64_t lane) {
      const std::int64_t of_lane = (rows - lane + kFactoredLanes - 1) / kFactoredLanes;
      const double sum = sum_in_order(
          of_lane, [=](std::int64_t i) { return static_cast<double>(moments[lane + i * kFactoredLanes]); });
      return static_cast<float>(sum / rows);
    });
    group.once([&] { *matrix.divisor = of.formula.divisor(mean); });
  }
};

}  // namespace lockstep::optim
