// The shapes as concat's kernels see them: every tensor consists of `outer` runs; a run of the output is the inputs'
// runs, one after another.
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/op.hpp"

namespace lockstep::ops {

struct ConcatRuns {
  std::int64_t outer = 0;
  std::vector<std::int64_t> runs;  ///< elements, by input
};

inline ConcatRuns concat_runs(const KernelRequest& request) {
  const auto rank = static_cast<std::int64_t>(request.inputs[0].shape.size());
  const std::int64_t given = request.attributes->integer("axis"), axis = given < 0 ? given + rank : given;
  const auto product = [](const Shape& shape, std::int64_t from, std::int64_t to) {
    return elements(Shape(shape.begin() + from, shape.begin() + to));
  };
  ConcatRuns result{product(request.inputs[0].shape, 0, axis), {}};
  for (const auto& input : request.inputs) result.runs.push_back(product(input.shape, axis, rank));
  return result;
}

}  // namespace lockstep::ops
