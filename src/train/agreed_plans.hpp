// One choice of algorithms for all ranks: what rank 0's kernels took of their libraries' proposals
// (KernelSet::plans()).
#pragma once

#include <string>
#include <vector>

#include "train/run_context.hpp"

namespace lockstep::train {

/// Rank 0's, on every rank. Every rank calls it.
[[nodiscard]] std::vector<std::string> plans_of_first_rank(const RunContext& run, const std::vector<std::string>& own);

}  // namespace lockstep::train
