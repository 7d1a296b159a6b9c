// What a job may say and rarely means: found in its graph, before the first step.
#pragma once

#include <string>
#include <vector>

#include "data/input/prepared_data.hpp"
#include "lockstep/graph.hpp"

namespace lockstep::train {

/// A sentence each, which names the layer, says what follows from it and what to try. `graph`: as make_job_graph()
/// makes it, before it is lowered or cut.
[[nodiscard]] std::vector<std::string> job_warnings(const Graph& graph, const input::PreparedData& data);

}  // namespace lockstep::train
