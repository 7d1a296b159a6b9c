// transpose on a Grid, one thread per element of the output.
#pragma once

#include <array>
#include <memory>

#include "device/gpu/grid.hpp"
#include "ops/element_grid.hpp"
#include "ops/elementwise.hpp"
#include "ops/gather_grid.hpp"
#include "ops/transpose/transpose_walk.hpp"

namespace lockstep::ops {

inline constexpr std::size_t kTransposeRank = 8;  ///< a kernel's arguments have a fixed size

/// From an element of the output to the element of the input.
struct TransposeOffset {
  std::array<std::int64_t, kTransposeRank> sizes, strides;  ///< starting with the last dimension
  std::size_t rank;

  explicit TransposeOffset(const TransposeWalk& walk) : sizes{}, strides{}, rank(walk.shape.size()) {
    require_gpu_rank(walk, kTransposeRank);
    for (std::size_t d = 0; d < rank; ++d) {
      sizes[d] = walk.shape[rank - 1 - d];
      strides[d] = walk.strides[rank - 1 - d];
    }
  }
  LOCKSTEP_HOST_DEVICE std::int64_t of(std::int64_t i) const {
    std::int64_t offset = 0;
    for (std::size_t d = 0; d < rank; ++d) {
      offset += i % sizes[d] * strides[d];
      i /= sizes[d];
    }
    return offset;
  }
};

template <class Grid, class T>
class TransposeGrid final : public Kernel {
 public:
  explicit TransposeGrid(const TransposeWalk& walk) : offset_(walk), n_(elements(walk.shape)) {}

  void forward(const ForwardCall& call) override {
    Grid::each(stream_of(call), n_, GatherFunctor<TransposeOffset, T>{input<T>(call), output<T>(call), offset_});
  }
  void backward(const BackwardCall& call) override {
    if (input_gradient(call) == nullptr) return;
    Grid::each(stream_of(call), n_,
               ScatterFunctor<TransposeOffset, T>{output_gradient<T>(call), input_gradient<T>(call), offset_});
  }

 private:
  TransposeOffset offset_;
  std::int64_t n_;
};

template <class Grid>
std::unique_ptr<Kernel> make_transpose_grid(const KernelRequest& request) {
  return make_for_elements(request, [&]<class T>(T /*element*/) {
    return std::make_unique<TransposeGrid<Grid, T>>(transpose_walk(request));
  });
}

}  // namespace lockstep::ops
