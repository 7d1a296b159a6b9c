// Lowering: rewrites a graph so that the same bits come from less work. Each pass is a file; `lockstep show JOB
// --lowered` prints what they made of a model. Names of parameters and states, and their order, stay as they were.
#pragma once

#include <string>
#include <vector>

#include "lockstep/device.hpp"
#include "lockstep/graph.hpp"

namespace lockstep {

struct LoweringPass {
  std::string name;
  std::string doc;                              ///< one line
  int (*run)(Graph& graph, DeviceKind device);  ///< returns how often it changed something
};

/// In the order in which they run.
[[nodiscard]] const std::vector<LoweringPass>& lowering_passes();

/// For kernels of this device.
[[nodiscard]] Graph lower(Graph graph, DeviceKind device);

/// Passes
int fuse_epilogues(Graph& graph, DeviceKind device);

}  // namespace lockstep
