// The shapes as concat's kernels see them: every tensor consists of `outer` runs; a run of the output is the inputs'
// runs, one after another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

#include "lockstep/op.hpp"
#include "ops/axis.hpp"

namespace lockstep::ops {

struct ConcatRuns {
  std::int64_t outer = 0;
  std::vector<std::int64_t> runs;  ///< elements, by input
};

inline ConcatRuns concat_runs(const KernelRequest& request) {
  const Shape& first = request.inputs[0].shape;
  const auto rank = std::ssize(first);
  const std::ptrdiff_t axis = axis_of("concat", *request.attributes, first);
  const auto product = [](const Shape& shape, std::ptrdiff_t from, std::ptrdiff_t to) {
    return elements(Shape(shape.begin() + from, shape.begin() + to));
  };
  ConcatRuns result{product(first, 0, axis), {}};
  for (const auto& input : request.inputs) result.runs.push_back(product(input.shape, axis, rank));
  return result;
}

}  // namespace lockstep::ops
