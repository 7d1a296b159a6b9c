// A product (device/gpu/product.hpp) in tiles. A block computes a square tile of the result. Of both operands it brings
// kDepth elements of the tile's lines at a time into shared memory, as float32: each thread 16 bytes of each, which it
// reads ahead, while the block computes with those before. A thread keeps its elements of the tile in registers.
//
// Ascending sums: a thread has 4 x 4 elements, of rows beside each other and of columns kBlockThreads / kGroupLanes
// apart, so that neighbouring threads store neighbouring elements. Lanes: a group of kGroupLanes threads has 8 x 8;
// lane l takes the terms l, l + kGroupLanes, ... of all of them, and at the end lanes exchange what they have.
//
// Behind the end of a line, and of the lines, elements are 0. A sum begins as +0 and is never -0, so that adding the
// term +0 changes no bit of it; but for fused sums, which may be -0 when a tiny product is rounded, and end with the
// line.
#pragma once

#include <cstdint>
#include <type_traits>

#include "device/gpu/grid.hpp"
#include "device/gpu/product.hpp"

namespace lockstep::device {

template <class Product>
struct ProductTiles {
  static constexpr bool kLanes = Product::kOrder == SumOrder::lanes;
  static constexpr int kLines = kLanes ? 32 : 64;  ///< rows, and columns, of a tile
  static constexpr int kPack = kPacked<typename Product::Left::Element>;
  static constexpr int kDepth = kBlockThreads * kPack / kLines;
  /// Shared memory: line `line` of step k stands at k * kStep + k / 8 * kShift + line. So threads that store along the
  /// depth, as many lines each warp as kShift, meet no bank twice, and neither do lanes that read step by step.
  static constexpr int kStep = kLines + 4, kShift = 32 * kPack / kDepth;
  static constexpr int kFloats = kDepth * kStep + kDepth / 8 * kShift;
  static_assert(kPack == kPacked<typename Product::Right::Element>, "operands of one type");

  static __device__ int place(int k, int line) { return k * kStep + k / 8 * kShift + line; }
  static __host__ __device__ std::int64_t tiles(std::int64_t lines) { return (lines + kLines - 1) / kLines; }
};

template <class Product>
std::int64_t blocks_of_product(const Product& product) {
  using Tiles = ProductTiles<Product>;
  return product.groups * Tiles::tiles(product.rows) * Tiles::tiles(product.columns);
}

/// A thread's part of bringing one operand's elements: kPack of a line, or of a step, one after the other.
template <class Tiles, class Operand>
class ProductLoader {
  using Element = typename Operand::Element;
  static constexpr int kPack = Tiles::kPack;
  static constexpr int kPacksOfRow = (Operand::kAlongDepth ? Tiles::kDepth : Tiles::kLines) / kPack;

 public:
  /// `lines`: how many the operand has; `first`: the tile's first.
  __device__ ProductLoader(const Operand& operand, std::int64_t group, std::int64_t first, std::int64_t lines,
                           std::int64_t depth, int thread)
      : operand_(operand),
        group_(group),
        lines_(lines),
        depth_(depth),
        k_(Operand::kAlongDepth ? thread % kPacksOfRow * kPack : thread / kPacksOfRow),
        of_tile_(Operand::kAlongDepth ? thread / kPacksOfRow : thread % kPacksOfRow * kPack),
        line_(first + of_tile_) {}

  /// Reads this thread's elements of the steps from `k` on, if they can be read at once.
  __device__ void read_ahead(std::int64_t k) {
    if (!is_whole(k)) return;
    const Element* const at = operand_.at(group_, line_, k + k_);
    ahead_ = at == nullptr ? Pack<Element, kPack>{} : read_pack<kPack>(at);
  }
  /// Puts them into shared memory; others are read now.
  __device__ void put(std::int64_t k, float* shared) const {
    if (is_whole(k)) {
      LOCKSTEP_UNROLL
      for (int e = 0; e < kPack; ++e) shared[place(e)] = static_cast<float>(ahead_.at[e]);
      return;
    }
    LOCKSTEP_DO_NOT_UNROLL
    for (int e = 0; e < kPack; ++e) {
      const std::int64_t step = k + k_ + (Operand::kAlongDepth ? e : 0), line = line_ + (Operand::kAlongDepth ? 0 : e);
      const bool is_there = step < depth_ && line < lines_;
      shared[place(e)] = is_there ? operand_value(operand_, group_, line, step) : 0.0F;
    }
  }

 private:
  __device__ bool is_whole(std::int64_t k) const {
    const std::int64_t step_end = k + k_ + (Operand::kAlongDepth ? kPack : 1);
    const std::int64_t line_end = line_ + (Operand::kAlongDepth ? 1 : kPack);
    return operand_.packs && step_end <= depth_ && line_end <= lines_;
  }
  __device__ int place(int e) const {
    return Operand::kAlongDepth ? Tiles::place(k_ + e, of_tile_) : Tiles::place(k_, of_tile_ + e);
  }

  const Operand& operand_;
  std::int64_t group_, lines_, depth_;
  int k_, of_tile_;  ///< of the first element, in the tile
  std::int64_t line_;
  Pack<Element, kPack> ahead_;
};

/// A thread's sums in ascending order.
template <class Tiles, bool kFused = false>
class AscendingSums {
 protected:
  static constexpr int kThreads = 16, kSums = Tiles::kLines / kThreads;  ///< in each direction

 public:
  explicit __device__ AscendingSums(int thread) : row_(thread / kThreads * kSums), column_(thread % kThreads) {}

  __device__ void add(const float* left, const float* right) {
    LOCKSTEP_DO_NOT_UNROLL
    for (int first = 0; first < Tiles::kDepth; first += 8) {
      LOCKSTEP_UNROLL
      for (int k = 0; k < 8; ++k)
        add_step(left + Tiles::place(first, 0) + k * Tiles::kStep, right + Tiles::place(first, 0) + k * Tiles::kStep);
    }
  }
  /// Calls store(row, column, sum), of the tile.
  template <class Store>
  __device__ void each(const Store& store) const {
    each_of(sums_, store);
  }

 protected:
  template <class Store>
  __device__ void each_of(const float (&sums)[kSums][kSums], const Store& store) const {
    LOCKSTEP_UNROLL
    for (int i = 0; i < kSums; ++i) {
      LOCKSTEP_UNROLL
      for (int j = 0; j < kSums; ++j) store(row_ + i, column_ + j * kThreads, sums[i][j]);
    }
  }
  __device__ void add_step(const float* left, const float* right) {
    const Pack<float, kSums> rows = read_pack<kSums>(left + row_);
    float columns[kSums];
    LOCKSTEP_UNROLL
    for (int j = 0; j < kSums; ++j) columns[j] = right[column_ + j * kThreads];
    LOCKSTEP_UNROLL
    for (int i = 0; i < kSums; ++i) {
      LOCKSTEP_UNROLL
      for (int j = 0; j < kSums; ++j)
        sums_[i][j] = kFused ? fmaf(rows.at[i], columns[j], sums_[i][j]) : sums_[i][j] + rows.at[i] * columns[j];
    }
  }
  int row_, column_;
  float sums_[kSums][kSums] = {};
};

/// The same with fused multiply-adds: the sums of a block of kFusedTerms, and of the blocks before it.
template <class Tiles>
class FusedSums : AscendingSums<Tiles, true> {
  using Base = AscendingSums<Tiles, true>;
  using Base::kSums;
  static_assert(kFusedTerms % Tiles::kDepth == 0);

 public:
  using Base::Base;

  /// Of the steps from `k` on.
  __device__ void add(const float* left, const float* right, std::int64_t k, std::int64_t depth) {
    if (k + Tiles::kDepth <= depth) {
      Base::add(left, right);
    } else {
      const auto steps = static_cast<int>(depth - k);
      LOCKSTEP_DO_NOT_UNROLL
      for (int step = 0; step < steps; ++step)
        this->add_step(left + Tiles::place(step, 0), right + Tiles::place(step, 0));
    }
    if ((k + Tiles::kDepth) % kFusedTerms != 0 && k + Tiles::kDepth < depth) return;
    LOCKSTEP_UNROLL
    for (int i = 0; i < kSums; ++i) {
      LOCKSTEP_UNROLL
      for (int j = 0; j < kSums; ++j) {
        totals_[i][j] = k < kFusedTerms ? this->sums_[i][j] : totals_[i][j] + this->sums_[i][j];
        this->sums_[i][j] = 0;
      }
    }
  }
  template <class Store>
  __device__ void each(const Store& store) const {
    this->each_of(totals_, store);
  }

 private:
  float totals_[kSums][kSums] = {};
};

/// A thread's part of the sums that lanes share.
template <class Tiles>
class LaneSums {
  static constexpr int kSums = 8, kGroups = Tiles::kLines / kSums;  ///< in each direction

 public:
  explicit __device__ LaneSums(int thread)
      : lane_(thread % kGroupLanes),
        row_(thread / kGroupLanes / kGroups * kSums),
        column_(thread / kGroupLanes % kGroups * kSums) {}

  __device__ void add(const float* left, const float* right) {
    LOCKSTEP_DO_NOT_UNROLL
    for (int first = 0; first < Tiles::kDepth; first += kGroupLanes) {
      const int at = Tiles::place(first + lane_, 0);
      const auto rows = read_pack<4>(left + at + row_), more_rows = read_pack<4>(left + at + row_ + 4);
      const auto columns = read_pack<4>(right + at + column_), more_columns = read_pack<4>(right + at + column_ + 4);
      LOCKSTEP_UNROLL
      for (int i = 0; i < kSums; ++i) {
        const float row = i < 4 ? rows.at[i % 4] : more_rows.at[i % 4];
        LOCKSTEP_UNROLL
        for (int j = 0; j < kSums; ++j) sums_[i][j] += row * (j < 4 ? columns.at[j % 4] : more_columns.at[j % 4]);
      }
    }
  }
  /// Calls store(row, column, sum), of the tile. Lanes that combine give each other half of what both have, until each
  /// has 4 rows of one column.
  template <class Store>
  __device__ void each(const Store& store) {
    LOCKSTEP_UNROLL
    for (int i = 0; i < kSums; ++i) {
      LOCKSTEP_UNROLL
      for (int j = 0; j < 4; ++j) combine<8>(sums_[i][j], sums_[i][j + 4]);
      LOCKSTEP_UNROLL
      for (int j = 0; j < 2; ++j) combine<4>(sums_[i][j], sums_[i][j + 2]);
      combine<2>(sums_[i][0], sums_[i][1]);
    }
    LOCKSTEP_UNROLL
    for (int i = 0; i < 4; ++i) {
      combine<1>(sums_[i][0], sums_[i + 4][0]);
      store(row_ + lane_ % 2 * 4 + i, column_ + lane_ / 2, sums_[i][0]);
    }
  }

 private:
  /// `kept`: the sum of this lane and the one at the distance, of `kept` in the lower lane and of `other` in the upper.
  template <int kDistance>
  __device__ void combine(float& kept, float other) const {
    const bool upper = (lane_ & kDistance) != 0;
    const float mine = upper ? other : kept, given = upper ? kept : other;
    kept = mine + __shfl_xor_sync(0xffffffffU, given, kDistance);
  }
  int lane_, row_, column_;
  float sums_[kSums][kSums] = {};
};

template <class Product>
__global__ void __launch_bounds__(kBlockThreads) run_product(Product product) {
  using Tiles = ProductTiles<Product>;
  constexpr bool kFused = Product::kOrder == SumOrder::fused;
  using InOrder = std::conditional_t<kFused, FusedSums<Tiles>, AscendingSums<Tiles>>;
  using Sums = std::conditional_t<Tiles::kLanes, LaneSums<Tiles>, InOrder>;
  __shared__ __align__(16) float left[Tiles::kFloats];
  __shared__ __align__(16) float right[Tiles::kFloats];
  const auto columns = static_cast<unsigned>(Tiles::tiles(product.columns));
  const auto rows = static_cast<unsigned>(Tiles::tiles(product.rows));
  const std::int64_t first_column = std::int64_t{blockIdx.x % columns} * Tiles::kLines;
  const std::int64_t first_row = std::int64_t{blockIdx.x / columns % rows} * Tiles::kLines;
  const std::int64_t group = blockIdx.x / columns / rows;
  const int thread = static_cast<int>(threadIdx.x);
  ProductLoader<Tiles, typename Product::Left> lefts(product.left, group, first_row, product.rows, product.depth,
                                                     thread);
  ProductLoader<Tiles, typename Product::Right> rights(product.right, group, first_column, product.columns,
                                                       product.depth, thread);
  Sums sums(thread);
  lefts.read_ahead(0);
  rights.read_ahead(0);
  for (std::int64_t k = 0; k < product.depth; k += Tiles::kDepth) {
    lefts.put(k, left);
    rights.put(k, right);
    __syncthreads();
    lefts.read_ahead(k + Tiles::kDepth);
    rights.read_ahead(k + Tiles::kDepth);
    if constexpr (kFused) {
      sums.add(left, right, k, product.depth);
    } else {
      sums.add(left, right);
    }
    __syncthreads();
  }
  sums.each([&](int row, int column, float sum) {
    if (first_row + row < product.rows && first_column + column < product.columns) {
      product.store(group, first_row + row, first_column + column, sum);
    }
  });
}

}  // namespace lockstep::device
