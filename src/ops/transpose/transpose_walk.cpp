#include "ops/transpose/transpose_walk.hpp"

#include <fmt/format.h>

#include "lockstep/error.hpp"

namespace lockstep::ops {

TransposeWalk transpose_walk(const KernelRequest& request) {
  const Shape& shape = request.inputs[0].shape;
  std::vector<std::int64_t> input_strides(shape.size(), 1);
  for (std::size_t d = shape.size() - 1; d > 0; --d) input_strides[d - 1] = input_strides[d] * shape[d];
  std::vector<std::int64_t> strides = {input_strides[0]};
  for (const auto dimension : request.attributes->integers("order")) {
    strides.push_back(input_strides[static_cast<std::size_t>(dimension)]);
  }
  return {request.outputs[0].shape, std::move(strides)};
}

void require_gpu_rank(const TransposeWalk& walk, std::size_t most) {
  if (walk.shape.size() <= most) return;
  throw Error(
      ExitCode::configuration,
      fmt::format("transpose: on a GPU expected at most {} dimensions, found an output {}; flatten some of them "
                  "by reshape first",
                  most, to_string(walk.shape)));
}

}  // namespace lockstep::ops
