// PaddedWeight: linear without a bias whose outputs are no multiple of 8, as 50,257 tokens, in low precision. Libraries
// have fast kernels only for rows that begin at multiples of 16 bytes and sums of a multiple of 8 terms. So they get a
// copy of the weight with rows of zeros behind it: outputs that nobody wants, and terms that add nothing. The output is
// made a part of its rows at a time, in rows with gaps, and copied from there.
#pragma once

#include <optional>

#include "device/gpu/element_kernels.hpp"
#include "ops/linear/linear_sizes.hpp"
#include "ops/product_layer_grid.hpp"

namespace lockstep::ops {

/// to[i] = from[i], then zeros
template <class T>
struct AppendZerosFunctor {
  const T* from;
  T* to;
  std::int64_t elements;  ///< of `from`
  LOCKSTEP_HOST_DEVICE float value(std::int64_t i) const { return i < elements ? static_cast<float>(from[i]) : 0.0F; }
  LOCKSTEP_HOST_DEVICE void store(std::int64_t i, float value) const { to[i] = value; }
};

/// Copies rows of `columns` elements that have gaps between them to rows without.
struct CloseRowsFunctor {
  const float* from;
  float* to;
  Divisor columns;
  std::int64_t gap;
  LOCKSTEP_HOST_DEVICE float value(std::int64_t i) const { return from[i + i / columns * gap]; }
  LOCKSTEP_HOST_DEVICE void store(std::int64_t i, float value) const { to[i] = value; }
};

/// Writes zeros into the gaps between rows of `columns` elements.
template <class T>
struct ClearGapsFunctor {
  T* rows;
  std::int64_t columns;
  Divisor gap;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t row = i / gap;
    rows[(row + 1) * columns + i] = 0.0F;
  }
};

class PaddedWeight {
 public:
  static constexpr std::int64_t kPartBytes = std::int64_t{64} << 20;  ///< of the output with gaps, at most
  static constexpr std::int64_t kFewestRows = 128;                    ///< of a part: fewer do not fill a GPU

  /// `sizes`: with a gap in dy, which an output in fp32 of low-precision factors has.
  PaddedWeight(const LinearSizes& sizes, DType type, std::int64_t part_bytes = kPartBytes)
      : sizes_(sizes), type_(type), parts_(parts_of(sizes, part_bytes)) {}

  static bool fits(const LinearSizes& sizes, bool bias) { return sizes.gap > 0 && !bias && sizes.in % 8 == 0; }

  /// Of a product that makes a part of the output, whose rows are as long as the padded weight; nothing if the output
  /// cannot be made in parts.
  std::optional<LinearSizes> output_sizes() const {
    if (parts_ == 0) return std::nullopt;
    return LinearSizes{sizes_.rows / parts_, sizes_.in, sizes_.dy_step()};
  }
  /// Of the product that makes the input's gradient.
  LinearSizes input_gradient_sizes() const { return {sizes_.rows, sizes_.in, sizes_.dy_step()}; }

  std::size_t workspace_bytes() const { return weight_bytes() + part_bytes(); }

  /// product(weight, x, y): a part of the output, in fp32.
  template <class Grid, class Product>
  void output(const ProductCall& call, const void* x, const void* weight, void* y, const Product& product) const {
    const void* const padded = copy<Grid>(call, weight);
    const std::int64_t rows = sizes_.rows / parts_;
    auto* const part = reinterpret_cast<float*>(static_cast<std::byte*>(call.workspace) + weight_bytes());
    const auto* from = static_cast<const std::byte*>(x);
    auto* to = static_cast<float*>(y);
    for (std::int64_t i = 0; i < parts_; ++i) {
      product(padded, from, part);
      Grid::each(call.stream, rows * sizes_.out, CloseRowsFunctor{part, to, Divisor(sizes_.out), sizes_.gap});
      from += static_cast<std::size_t>(rows * sizes_.in) * size_of(type_);
      to += rows * sizes_.out;
    }
  }

  /// product(weight): the input's gradient. `dy`: its gaps belong to this layer, and are cleared.
  template <class Grid, class Product>
  void input_gradient(const ProductCall& call, const void* dy, const void* weight, const Product& product) const {
    device::with_low_precision(type_, [&]<class T>(T /*element*/) {
      auto* const rows = static_cast<T*>(const_cast<void*>(dy));
      Grid::each(call.stream, sizes_.rows * sizes_.gap, ClearGapsFunctor<T>{rows, sizes_.out, Divisor(sizes_.gap)});
    });
    product(copy<Grid>(call, weight));
  }

 private:
  /// The fewest parts of equal size that are small enough; 0 if they would have too few rows.
  static std::int64_t parts_of(const LinearSizes& sizes, std::int64_t bytes) {
    const std::int64_t row = sizes.dy_step() * static_cast<std::int64_t>(sizeof(float));
    for (std::int64_t parts = 1; parts <= sizes.rows; ++parts) {
      if (sizes.rows % parts != 0) continue;
      const std::int64_t rows = sizes.rows / parts;
      if (parts > 1 && rows < kFewestRows) return 0;
      if (rows * row <= bytes) return parts;
    }
    return 0;
  }

  template <class Grid>
  const void* copy(const ProductCall& call, const void* weight) const {
    device::with_low_precision(type_, [&]<class T>(T /*element*/) {
      Grid::each(call.stream, sizes_.dy_step() * sizes_.in,
                 AppendZerosFunctor<T>{static_cast<const T*>(weight), static_cast<T*>(call.workspace),
                                       sizes_.out * sizes_.in});
    });
    return call.workspace;
  }
  std::size_t weight_bytes() const {
    return aligned_for_libraries(static_cast<std::size_t>(sizes_.dy_step() * sizes_.in) * size_of(type_));
  }
  std::size_t part_bytes() const {
    if (parts_ == 0) return 0;
    return aligned_for_libraries(static_cast<std::size_t>(sizes_.rows / parts_ * sizes_.dy_step()) * sizeof(float));
  }

  LinearSizes sizes_;
  DType type_;
  std::int64_t parts_;  ///< of the output's rows
};

}  // namespace lockstep::ops
