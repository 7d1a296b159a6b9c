// Lowering: rewrites a graph so that the same result takes less work: in float32 with the same bits; in low precision
// with fewer roundings where a pass says so. Each pass is a file; `lockstep show JOB --lowered` prints what they make
// of a model. Names and order of parameters and states do not change.
#pragma once

#include <string>
#include <vector>

#include "lockstep/device.hpp"
#include "lockstep/graph.hpp"
#include "lockstep/op.hpp"

namespace lockstep {

/// The device whose kernels the graph is rewritten for.
struct LoweringTarget {
  DeviceKind device = DeviceKind::cpu;
  const OpRegistry* ops = nullptr;  ///< has the ops that passes insert, and outlives the graph; null: they insert none
};

struct LoweringPass {
  std::string name;
  std::string doc;                                         ///< one line
  int (*run)(Graph& graph, const LoweringTarget& target);  ///< returns the number of changes
};

/// In the order in which they run.
[[nodiscard]] const std::vector<LoweringPass>& lowering_passes();

[[nodiscard]] Graph lower(Graph graph, const LoweringTarget& target);

// The passes.
int fuse_epilogues(Graph& graph, const LoweringTarget& target);
int fuse_gelu(Graph& graph, const LoweringTarget& target);
int order_weights(Graph& graph, const LoweringTarget& target);
int round_loss_gradient(Graph& graph, const LoweringTarget& target);

// Shared by passes.

/// By value: the number of nodes that read it, as input or as parameter; being the graph's output counts as one more.
[[nodiscard]] std::vector<int> readers_of(const Graph& graph);

/// Removes the nodes whose `gone`, by index, is true, and renumbers the others.
void remove_nodes(Graph& graph, const std::vector<bool>& gone);

}  // namespace lockstep
