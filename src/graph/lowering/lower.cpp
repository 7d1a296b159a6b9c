#include "graph/lowering/lower.hpp"

namespace lockstep {

const std::vector<LoweringPass>& lowering_passes() {
  static const std::vector<LoweringPass> kPasses = {
      {"fuse_epilogues", "an op that is applied to another's output only is computed by the other's kernel",
       fuse_epilogues},
      {"fuse_gelu", "gelu between two linear layers is computed by their kernels, on GPUs", fuse_gelu},
      {"order_weights", "weights lie as the device's convolutions want them, on GPUs with channels last",
       order_weights},
  };
  return kPasses;
}

Graph lower(Graph graph, const LoweringTarget& target) {
  for (const LoweringPass& pass : lowering_passes()) pass.run(graph, target);
  return graph;
}

}  // namespace lockstep
