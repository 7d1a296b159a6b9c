// The set that `lockstep eval` runs through, opened with as little of the job's data as it takes.
#pragma once

#include <memory>
#include <string>

#include "cli/job_argument.hpp"
#include "cli/saved_model.hpp"
#include "input/prepared_data.hpp"
#include "lockstep/trainer.hpp"

namespace lockstep::cli {

struct EvalSet {
  std::shared_ptr<const DataSet> set;
  input::PreparedData data;  ///< what there is to know of the training data
};

/// `name`: validation, test or train. Throws Error(usage) where the job has no such set.
void require_eval_set(const std::string& name, const Job& job);

/// The training data are opened only for `train`, for a validation set that is a part of them, and for a checkpoint
/// that is bare weights.
[[nodiscard]] EvalSet open_eval_set(const std::string& name, JobArgument& argument, const Job& job,
                                    const SavedFiles& files, const Registries& registries, Communicator& communicator);

}  // namespace lockstep::cli
