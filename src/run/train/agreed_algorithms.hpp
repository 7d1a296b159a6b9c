// Makes all ranks use the same algorithms: those that rank 0's kernels chose from what their libraries proposed
// (KernelSet::algorithms()).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/communicator.hpp"
#include "lockstep/job.hpp"
#include "run/train/model_parts.hpp"
#include "step/exec/executor.hpp"

namespace lockstep::train {

/// Whether all ranks must use the same algorithms; without `exact: required`, each may use its own.
[[nodiscard]] inline bool computes_alike(const Job& job, const exec::Device& device) {
  return device.chooses_algorithms() && job.exact == Exactness::required;
}

/// make(algorithms): an executor whose kernels use these algorithms; if empty, the first ones that their libraries
/// propose.
using MakeExecutor = std::function<std::unique_ptr<exec::Executor>(const std::vector<std::string>& algorithms)>;

/// An executor whose kernels compute as rank 0's do. Collective, for ranks with GPUs. Throws Error(usage) if a library
/// on this rank does not propose what rank 0 uses.
[[nodiscard]] std::unique_ptr<exec::Executor> make_with_algorithms_of_first_rank(Communicator& communicator,
                                                                                 const MakeExecutor& make);

/// Collective: the algorithms chosen for the whole model, in the order of its graph. For this rank's own part they are
/// those of its own kernels; for any other part, those of the part's first rank.
[[nodiscard]] std::vector<std::string> algorithms_of_all_parts(const ModelParts& parts, const exec::Executor& executor,
                                                               Communicator& communicator);

}  // namespace lockstep::train
