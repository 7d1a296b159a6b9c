// A loss that counts the samples of its micro-batch by weights has these, [b], as one more input than its op has. What
// the kernel makes for a sample, loss, count and gradient, is multiplied by the sample's weight; the kernel does not
// get it. Of several losses, their sum has them.
#pragma once

#include "lockstep/graph.hpp"
#include "lockstep/op.hpp"

namespace lockstep {

[[nodiscard]] inline bool is_weighted(const Node& node) {
  return (node.op->kind == OpKind::loss || node.op->kind == OpKind::sum) && node.op->max_inputs >= 0 &&
         node.inputs.size() > static_cast<std::size_t>(node.op->max_inputs);
}

}  // namespace lockstep
