// matmul on a Grid: a group of products (device/gpu/product.hpp) for each kind of result. As in linear, sums over what
// is contiguous in both operands are in lanes, others in ascending order. Low-precision elements are read as they are,
// and results rounded once.
#pragma once

#include <memory>

#include "device/gpu/product.hpp"
#include "ops/element_grid.hpp"
#include "ops/elementwise.hpp"
#include "ops/matmul/matmul_sizes.hpp"

namespace lockstep::ops {

/// MatrixLines of a matrix for each group, [groups, rows, columns].
template <class T, bool kDepth>
struct LinesOfGroups {
  using Element = T;
  static constexpr bool kAlongDepth = kDepth;
  const T* data;
  std::int64_t matrix, columns;  ///< elements
  bool packs;
  LinesOfGroups(const void* matrices, std::int64_t rows_each, std::int64_t columns_each)
      : data(static_cast<const T*>(matrices)),
        matrix(rows_each * columns_each),
        columns(columns_each),
        packs(device::can_pack(data, columns)) {}
  LOCKSTEP_HOST_DEVICE const T* at(std::int64_t group, std::int64_t line, std::int64_t k) const {
    return data + group * matrix + (kDepth ? line * columns + k : k * columns + line);
  }
};

template <class T>
struct StoreInGroup {
  T* to;
  std::int64_t rows, columns;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t group, std::int64_t row, std::int64_t column, float sum) const {
    to[(group * rows + row) * columns + column] = sum;
  }
};

template <class Grid, class T>
class MatmulGrid final : public Kernel {
 public:
  explicit MatmulGrid(const KernelRequest& request) : s_(*request.attributes, request.inputs) {}

  void forward(const ForwardCall& call) override {
    const Lines a(call.inputs[0], s_.m, s_.k);
    const Result to{s_.m, s_.n, s_.k, output<T>(call)};
    if (s_.transposed) {
      multiply(stream_of(call), to, a, Lines(call.inputs[1], s_.n, s_.k));
    } else {
      multiply(stream_of(call), to, a, Columns(call.inputs[1], s_.k, s_.n));
    }
  }

  void backward(const BackwardCall& call) override {
    GpuStream* const stream = stream_of(call);
    const void *a = call.inputs[0], *b = call.inputs[1], *dy = call.output_gradients[0];
    if (T* da = input_gradient<T>(call, 0); da != nullptr) {
      const Lines rows(dy, s_.m, s_.n);
      const Result to{s_.m, s_.k, s_.n, da};
      if (s_.transposed) {
        multiply(stream, to, rows, Columns(b, s_.n, s_.k));
      } else {
        multiply(stream, to, rows, Lines(b, s_.k, s_.n));
      }
    }
    T* const db = input_gradient<T>(call, 1);
    if (db == nullptr) return;
    const Columns of_a(a, s_.m, s_.k), of_dy(dy, s_.m, s_.n);
    if (s_.transposed) {
      multiply(stream, {s_.n, s_.k, s_.m, db}, of_dy, of_a);
    } else {
      multiply(stream, {s_.k, s_.n, s_.m, db}, of_a, of_dy);
    }
  }

 private:
  using Lines = LinesOfGroups<T, true>;
  using Columns = LinesOfGroups<T, false>;
  struct Result {
    std::int64_t rows, columns, depth;
    T* to;
  };
  template <class Left, class Right>
  void multiply(GpuStream* stream, const Result& result, const Left& left, const Right& right) const {
    constexpr bool kLanes = Left::kAlongDepth && Right::kAlongDepth;
    constexpr auto kOrder = kLanes ? device::SumOrder::lanes : device::SumOrder::ascending;
    Grid::product(stream, device::product_of<kOrder>(s_.count, result.rows, result.columns, result.depth, left, right,
                                                     StoreInGroup<T>{result.to, result.rows, result.columns}));
  }

  MatmulSizes s_;
};

/// Null if the elements do not have the products' type.
template <class Grid>
std::unique_ptr<Kernel> make_matmul_grid(const KernelRequest& request) {
  if (common_element(request) != request.compute_type) return nullptr;
  return make_for_elements(request,
                           [&]<class T>(T /*element*/) { return std::make_unique<MatmulGrid<Grid, T>>(request); });
}

}  // namespace lockstep::ops
