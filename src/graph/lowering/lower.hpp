// Lowering: rewrites a graph so that the same comes from less work: in float32 the same bits; in low precision less is
// rounded on the way where a pass says so. Each pass is a file; `lockstep show JOB --lowered` prints what they made of
// a model. Names of parameters and states, and their order, stay as they were.
#pragma once

#include <string>
#include <vector>

#include "lockstep/device.hpp"
#include "lockstep/graph.hpp"
#include "lockstep/op.hpp"

namespace lockstep {

/// Whose kernels the graph is rewritten for.
struct LoweringTarget {
  DeviceKind device = DeviceKind::cpu;
  const OpRegistry* ops = nullptr;  ///< has the ops that passes make, and outlives the graph; null: none are made
};

struct LoweringPass {
  std::string name;
  std::string doc;                                         ///< one line
  int (*run)(Graph& graph, const LoweringTarget& target);  ///< returns how often it changed something
};

/// In the order in which they run.
[[nodiscard]] const std::vector<LoweringPass>& lowering_passes();

[[nodiscard]] Graph lower(Graph graph, const LoweringTarget& target);

// The passes.
int fuse_epilogues(Graph& graph, const LoweringTarget& target);
int fuse_gelu(Graph& graph, const LoweringTarget& target);
int order_weights(Graph& graph, const LoweringTarget& target);

// What passes share.

/// By value, how many nodes read it, as input or as parameter; as the graph's output it is read once more.
[[nodiscard]] std::vector<int> readers_of(const Graph& graph);

/// Takes out the nodes whose `gone` is true, by index, and counts the others anew.
void remove_nodes(Graph& graph, const std::vector<bool>& gone);

}  // namespace lockstep
