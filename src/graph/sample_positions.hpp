// Which dimension of a tensor is the positions of its samples' tokens, and whether these are still where the input had
// them, so that a sample's length says which of them are padding.
#pragma once

#include <string>

#include "lockstep/graph.hpp"

namespace lockstep {

/// What is wrong with the first layer that reads lengths over other positions than the input's own; empty: nothing.
/// What cuts positions off at the end leaves the others where they are.
[[nodiscard]] std::string misplaced_lengths(const Graph& graph);

/// The first layer that sums up positions of which some are padding, in a model of which others leave it out; empty:
/// none.
[[nodiscard]] std::string padding_counted(const Graph& graph);

}  // namespace lockstep
