// Gradient check: whether an op's backward() is the derivative of its forward(). For tests of your own ops and losses.
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/attributes.hpp"
#include "lockstep/op.hpp"
#include "lockstep/tensor.hpp"

namespace lockstep {

/// Where the derivative is taken.
struct GradientCheck {
  Attributes attributes = {};  ///< missing ones get the op's defaults
  std::vector<Tensor> inputs;  ///< the op's, dimension 0 a batch; f32 where a gradient is wanted, and not within
                               ///< 1/32 of where forward() has a corner
  std::uint64_t seed = 1;      ///< of the parameters' values, and of the gradient of output 0
  double tolerance = 2e-3;     ///< of a difference, relative to the tensor's largest gradient
  std::int64_t most_elements = 1'000;  ///< of a tensor that are tried, evenly spread
};

/// Compares what the CPU kernel's backward() writes, of each input and parameter, with differences of forward() over
/// five points, whose error is of the fourth order. backward() finds NaN in tensors that OpDef::backward_reads does not
/// name, and in gradients that it does not write. Returns the largest difference. Throws Error(usage) if it is above
/// the tolerance, which names the tensor and the element; what `infer` and the kernel throw passes.
double check_gradient(const OpDef& op, GradientCheck check);

}  // namespace lockstep
