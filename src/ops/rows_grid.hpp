// Sums over rows on a Grid, in the order of device/row_blocks.hpp, and the sums of that kind that norms over rows need.
#pragma once

#include <cstdint>

#include "device/gpu/grid.hpp"
#include "device/row_blocks.hpp"
#include "ops/rows.hpp"

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

/// functor(group, row), or functor(group, row, memory) where the `kept` rows that it keeps fit into shared memory.
template <class Grid, class Functor>
void launch_rows(GpuStream* stream, const Rows& rows, std::int64_t kept, const Functor& functor) {
  if (device::can_be_staged(kept, rows.size, device::kBlockGroups)) {
    Grid::staged_rows(stream, rows.count, kept * rows.size, functor);
  } else {
    Grid::rows(stream, rows.count, functor);
  }
}

/// dx[i] = gradient of four neighbours of a staged row, and added[i], if it isn't null; as if it had been stored before
/// `added`, which dx may be, was added.
template <class T, class Group, class Four>
LOCKSTEP_HOST_DEVICE void write_gradients(Group& group, T* dx, std::int64_t size, const Four& gradient,
                                          const T* added) {
  const auto alone = [=](std::int64_t i) { return device::rounded<T>(gradient(i)); };
  if (added == nullptr) {
    group.write_packs(dx, size, alone);
  } else {
    group.write_packs(dx, size, [=](std::int64_t i) {
      auto pack = alone(i);
      const auto more = device::read_pack<4>(added + i);
      LOCKSTEP_UNROLL
      for (int e = 0; e < 4; ++e) pack.at[e] = pack.at[e] + more.at[e];
      return pack;
    });
  }
}

/// dy * z, with z = (x - mean) * scale, or x * scale if it isn't `kCentered`.
template <class T, bool kCentered>
struct ScaleGradients {
  const T *x, *dy;
  const float *means, *scales;  ///< [rows]; means may be null if it isn't centered
  std::int64_t columns;
  LOCKSTEP_HOST_DEVICE float of(std::int64_t row, std::int64_t column) const {
    const std::int64_t at = row * columns + column;
    const float centered = kCentered ? x[at] - means[row] : x[at];
    return dy[at] * (centered * scales[row]);
  }
};

/// Terms of the gradients of a norm's weight and bias, which are added side by side: dy is read once for both.
struct alignas(8) WeightAndBias {
  float weight = 0, bias = 0;
  LOCKSTEP_HOST_DEVICE WeightAndBias& operator+=(const WeightAndBias& other) {
    weight += other.weight;
    bias += other.bias;
    return *this;
  }
};

template <class T>
struct WeightAndBiasTerms {
  ScaleGradients<T, true> of_weight;
  LOCKSTEP_HOST_DEVICE WeightAndBias of(std::int64_t row, std::int64_t column) const {
    return {of_weight.of(row, column), of_weight.dy[row * of_weight.columns + column]};
  }
};

/// Where their sums over all rows go; null: not wanted.
struct WeightAndBiasGradients {
  float *weight, *bias;  ///< [columns]
};
LOCKSTEP_HOST_DEVICE inline void put_sum(const WeightAndBiasGradients& to, std::int64_t i, const WeightAndBias& sum) {
  if (to.weight != nullptr) to.weight[i] = sum.weight;
  if (to.bias != nullptr) to.bias[i] = sum.bias;
}

/// Scratch is [scratch_rows(rows), columns].
template <class Grid, class T>
void launch_weight_and_bias_sums(GpuStream* stream, const ScaleGradients<T, true>& gradients, std::int64_t rows,
                                 const WeightAndBiasGradients& to, WeightAndBias* scratch) {
  using device::RowBlocks;
  const std::int64_t columns = gradients.columns;
  const auto launch = [&]<class Added>(const Added& added, const RowBlocks& blocks, WeightAndBias* between) {
    if (blocks.count() > 1) {
      Grid::each(stream, blocks.count() * columns,
                 device::SumBlocksFunctor<Added, WeightAndBias>{added, blocks, columns, between});
    } else {
      Grid::each(stream, columns,
                 device::SumBlocksFunctor<Added, WeightAndBias, WeightAndBiasGradients>{added, blocks, columns, to});
    }
  };
  WeightAndBias* const nowhere = nullptr;  // the last level's sums go to `to`
  device::for_levels(
      rows, columns, nowhere, scratch,
      [&](const RowBlocks& blocks, WeightAndBias* between) {
        launch(WeightAndBiasTerms<T>{gradients}, blocks, between);
      },
      [&](const WeightAndBias* from, const RowBlocks& blocks, WeightAndBias* between) {
        launch(device::RowElements<WeightAndBias>{from, columns}, blocks, between);
      });
}

}  // namespace lockstep::ops
