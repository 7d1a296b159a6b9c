// Units of parameters: what ranks that divide a model's parameters fetch or gather together.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/program.hpp"
#include "lockstep/graph.hpp"

namespace lockstep::optim {

/// By parameter: its unit, of about `unit_bytes`. Parameters that a program reads one after the other are in one.
[[nodiscard]] std::vector<int> parameter_units(const Graph& graph, const Program& program, std::int64_t unit_bytes);

}  // namespace lockstep::optim
