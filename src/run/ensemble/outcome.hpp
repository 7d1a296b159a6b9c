// Predictions held against a set's targets: the job's own loss and metrics, computed by its own kernels.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "data/input/prepared_data.hpp"
#include "lockstep/data_set.hpp"
#include "lockstep/job.hpp"
#include "lockstep/trainer.hpp"
#include "run/ensemble/combine.hpp"
#include "run/ensemble/fit.hpp"
#include "run/train/loaded_model.hpp"

namespace lockstep::ensemble {

/// The targets of a set, which its job's loss compares with.
struct SetTargets {
  Feature feature;
  std::vector<std::byte> bytes;  ///< by sample, as the feature's type
};

/// Class numbers are read without decoding images.
[[nodiscard]] SetTargets targets_of(const DataSet& set, const Job& job);
/// Of a set of this model's job, or one like it.
[[nodiscard]] Targets as_numbers(const SetTargets& targets, const train::LoadedModel& model);

/// "loss" and the job's metrics of raw predictions [samples, width], each sample once, on this rank's CPU. `data`: of
/// the member on whose scale the loss of normalized targets is.
[[nodiscard]] std::map<std::string, double> metrics_of(const std::vector<float>& predictions, std::size_t width,
                                                       const SetTargets& targets, const JobFile& job,
                                                       const input::PreparedData& data, const Registries& registries);

}  // namespace lockstep::ensemble
