// What transpose's kernels see of their shapes.
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/op.hpp"

namespace lockstep::ops {

struct TransposeWalk {
  Shape shape;                        ///< of the output
  std::vector<std::int64_t> strides;  ///< elements of the input that one step in the output's dimension is
};

[[nodiscard]] TransposeWalk transpose_walk(const KernelRequest& request);

/// Throws Error(configuration) if a GPU's kernel, which holds `most` dimensions, cannot walk this.
void require_gpu_rank(const TransposeWalk& walk, std::size_t most);

}  // namespace lockstep::ops
