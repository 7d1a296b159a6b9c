// Targets that a loss is not for, found before a step meets them: kernels of GPUs cannot say what they were given.
#pragma once

#include "data/input/prepared_data.hpp"
#include "lockstep/graph.hpp"
#include "lockstep/trainer.hpp"

namespace lockstep::train {

/// Throws Error(data) with the row and the column of a number that is no share where the loss wants shares, or of
/// numbers that don't add up to 1 where it wants probabilities; config::Problems, with a sample, where it tells two
/// classes apart and there are more. Knows what indexing knows: numbers of tables and of CSVs, classes of all sets.
void require_targets(const Graph& graph, const JobFile& job, const input::PreparedData& data);

}  // namespace lockstep::train
