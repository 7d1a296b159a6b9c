// The shapes as transpose's kernels see them.
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/op.hpp"

namespace lockstep::ops {

struct TransposeWalk {
  Shape shape;                        ///< of the output
  std::vector<std::int64_t> strides;  ///< by dimension of the output: how far one step moves in the input, in elements
};

[[nodiscard]] TransposeWalk transpose_walk(const KernelRequest& request);

/// Throws Error(configuration) if a GPU kernel with at most `most` dimensions cannot do this.
void require_gpu_rank(const TransposeWalk& walk, std::size_t most);

}  // namespace lockstep::ops
