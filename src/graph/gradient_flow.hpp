// From the loss back: which values get a gradient, and which nodes compute one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lockstep/graph.hpp"

namespace lockstep {

struct GradientFlow {
  std::vector<bool> wanted;    ///< by value: a trained parameter stands before it
  std::vector<bool> backward;  ///< by node: it stands between one and the loss
};

[[nodiscard]] GradientFlow gradient_flow(const Graph& graph);

/// Whether the backward of `node` adds to the gradient of its input `i`.
[[nodiscard]] bool adds_gradient(const Graph& graph, const GradientFlow& flow, std::int32_t node, std::size_t i);

}  // namespace lockstep
