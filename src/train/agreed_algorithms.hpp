// One choice of algorithms for all ranks: what rank 0's kernels took of their libraries' proposals
// (KernelSet::algorithms()).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "exec/executor.hpp"
#include "lockstep/communicator.hpp"
#include "lockstep/job.hpp"
#include "train/model_parts.hpp"

namespace lockstep::train {

/// Whether all ranks must take the same: `exact` may leave each its own.
[[nodiscard]] inline bool computes_alike(const Job& job, const exec::Device& device) {
  return device.chooses_algorithms() && job.exact == Exactness::required;
}

/// make(algorithms): an executor whose kernels take these algorithms; of none, the first that their libraries propose.
using MakeExecutor = std::function<std::unique_ptr<exec::Executor>(const std::vector<std::string>& algorithms)>;

/// One whose kernels compute on every rank as rank 0's do. Every rank calls it, with a GPU. Throws Error(usage) where a
/// library does not propose here what rank 0's took.
[[nodiscard]] std::unique_ptr<exec::Executor> make_with_algorithms_of_first_rank(Communicator& communicator,
                                                                                 const MakeExecutor& make);

/// Collective: what the kernels of the whole model chose, in the order of its graph, wherever its parts lie. Of the own
/// part it is what this rank's kernels chose, of another what its first rank's did.
[[nodiscard]] std::vector<std::string> algorithms_of_all_parts(const ModelParts& parts, const exec::Executor& executor,
                                                               Communicator& communicator);

}  // namespace lockstep::train
