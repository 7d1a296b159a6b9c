#include "graph/lowering/lower.hpp"

namespace lockstep {

const std::vector<LoweringPass>& lowering_passes() {
  static const std::vector<LoweringPass> kPasses = {
      {"fuse_epilogues", "an op that is applied to another's output only is computed by the other's kernel",
       fuse_epilogues},
  };
  return kPasses;
}

Graph lower(Graph graph, DeviceKind device) {
  for (const LoweringPass& pass : lowering_passes()) pass.run(graph, device);
  return graph;
}

}  // namespace lockstep
