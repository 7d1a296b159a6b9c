// What a kernel computes of a problem, and how two kernels' results differ.
#pragma once

#include <string>
#include <vector>

#include "ops/op_driver.hpp"

namespace lockstep::ops {

struct NamedResult {
  std::string name;
  TensorSpec spec;
  KernelRun::Bytes bytes;
};
using Results = std::vector<NamedResult>;

/// Outputs, statistics and gradients; also with a second term of a gradient, where the kernel adds one, and in the
/// place of an operand, where the op allows it.
[[nodiscard]] Results results_of(const Problem& problem, Kernel& kernel);

/// The gradient that a loss rounds to bf16, with a gap behind each row: between its rows lies what was there.
[[nodiscard]] Results rounded_gradient(const Problem& problem, Kernel& kernel);

/// The first difference larger than `tolerance` times (`floor` + the largest value); if `tolerance` is 0, the first
/// differing bits. Empty: none.
[[nodiscard]] std::string difference(const Results& expected, const Results& found, double tolerance, double floor = 1);

}  // namespace lockstep::ops
