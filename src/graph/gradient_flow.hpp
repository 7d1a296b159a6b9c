// Which values get a gradient, and which nodes compute one, seen from the loss.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lockstep/graph.hpp"

namespace lockstep {

struct GradientFlow {
  std::vector<bool> wanted;    ///< by value: it depends on a trained parameter
  std::vector<bool> backward;  ///< by node: it is between a trained parameter and the loss
};

[[nodiscard]] GradientFlow gradient_flow(const Graph& graph);

/// Whether the backward of `node` adds to the gradient of its input `i`.
[[nodiscard]] bool adds_gradient(const Graph& graph, const GradientFlow& flow, std::int32_t node, std::size_t i);

}  // namespace lockstep
