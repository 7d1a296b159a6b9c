// Products of matrices on a Grid (grid.hpp): an element of the result is a sum, over k, of an element of the left
// operand's line times one of the right operand's, in float32. In which order terms are added is stated, and is the
// same on every Grid: CudaGrid cuts the result into tiles, which changes only where the operands come from.
//
//   Grid::product(stream, Product{...})    store(group, row, column, sum) for each element of the result, in any order
//
// An operand says where its elements are:
//
//   using Element = ...;                                        float, or Element<Format>
//   static constexpr bool kAlongDepth = ...;                    which elements are neighbours in memory: those of one
//                                                               line and k, k + 1, ..., or those of lines beside it
//   const Element* at(std::int64_t group, std::int64_t line, std::int64_t k) const;   null: the element is 0
//   bool packs;                                                 16 bytes that begin at a multiple of so many elements
//                                                               can be read at once, as far as they exist
#pragma once

#include <cstdint>

#include "core/host_device.hpp"
#include "device/gpu/pack.hpp"

namespace lockstep::device {

enum class SumOrder : std::uint8_t {
  ascending,  ///< from k = 0 on
  lanes,      ///< as HostGroup::sum does: kGroupLanes sums of every kGroupLanes-th term, which are then combined
  fused       ///< as gemm does on CPUs with fused multiply-adds (device/cpu/gemm.hpp): from k = 0 on, in blocks of
              ///< kFusedTerms, whose sums are then added from the first to the last
};
inline constexpr std::int64_t kFusedTerms = 256;

template <SumOrder kSumOrder, class LeftOperand, class RightOperand, class StoreSum>
struct Product {
  static constexpr SumOrder kOrder = kSumOrder;
  using Left = LeftOperand;
  using Right = RightOperand;
  std::int64_t groups, rows, columns, depth;  ///< of each group
  Left left;                                  ///< its lines are the rows
  Right right;                                ///< its lines are the columns
  StoreSum store;
  bool is_empty() const { return groups == 0 || rows == 0 || columns == 0; }
};

template <SumOrder kOrder, class Left, class Right, class Store>
Product<kOrder, Left, Right, Store> product_of(std::int64_t groups, std::int64_t rows, std::int64_t columns,
                                               std::int64_t depth, const Left& left, const Right& right,
                                               const Store& store) {
  return {groups, rows, columns, depth, left, right, store};
}

/// Whether packs of T can be read at multiples of kPacked<T> elements from `data`, and of `step` from each.
template <class T>
bool can_pack(const T* data, std::int64_t step) {
  return reinterpret_cast<std::uintptr_t>(data) % 16 == 0 && step % kPacked<T> == 0;
}

/// A matrix as an operand. Its lines are its rows, or its columns (`kDepth` false).
template <class T, bool kDepth>
struct MatrixLines {
  using Element = T;
  static constexpr bool kAlongDepth = kDepth;
  const T* data;
  std::int64_t step;  ///< elements from row to row
  bool packs;
  MatrixLines(const T* matrix, std::int64_t row_step)
      : data(matrix), step(row_step), packs(can_pack(matrix, row_step)) {}
  LOCKSTEP_HOST_DEVICE const T* at(std::int64_t /*group*/, std::int64_t line, std::int64_t k) const {
    return data + (kDepth ? line * step + k : k * step + line);
  }
};

/// to[row, column] = sum + bias[column], for one group. `bias`: null if there is none.
template <class Out>
struct StoreElement {
  const float* bias;
  Out* to;
  std::int64_t columns;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t /*group*/, std::int64_t row, std::int64_t column, float sum) const {
    to[row * columns + column] = bias == nullptr ? sum : sum + bias[column];
  }
};

/// The value of an operand's element.
template <class Operand>
LOCKSTEP_HOST_DEVICE float operand_value(const Operand& operand, std::int64_t group, std::int64_t line,
                                         std::int64_t k) {
  const auto* const at = operand.at(group, line, k);
  return at == nullptr ? 0.0F : static_cast<float>(*at);
}

}  // namespace lockstep::device
