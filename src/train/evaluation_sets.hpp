// The sets that a trained model is evaluated on, opened with as little of the job's data as it takes.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "data/replacing_set.hpp"
#include "input/prepared_data.hpp"
#include "lockstep/trainer.hpp"

namespace lockstep::train {

struct EvaluationSet {
  std::shared_ptr<const DataSet> set;
  std::shared_ptr<data::ReplacedSamples> replaced;
};

/// `name`: validation, test or train. Throws Error(usage) for another, and where the job has no such set.
void require_evaluation_set(const std::string& name, const Job& job, const DataSets& own = {});

/// Opens a set of the job. `known`: what a checkpoint remembers of the training data, or these themselves, which are
/// taken from there then. Where they are needed beside, `with_data` gives the job: one whose files must exist.
[[nodiscard]] EvaluationSet open_evaluation_set(const std::string& name, const Job& job, const DataSets& own,
                                                const input::PreparedData& known,
                                                const std::function<JobFile()>& with_data, Communicator& communicator);

}  // namespace lockstep::train
