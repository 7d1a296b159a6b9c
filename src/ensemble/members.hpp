// The members of an ensemble: found in directories, loaded, and asked for predictions side by side.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ensemble/combine.hpp"
#include "ensemble/fit.hpp"
#include "lockstep/communicator.hpp"
#include "lockstep/trainer.hpp"
#include "train/loaded_model.hpp"

namespace lockstep::ensemble {

/// Run directories: of an ensemble's or a sweep's directory those of its trials, which must all be done; any other
/// directory is a run's itself. Throws Error(data) if a trial is not, Error(usage) if there are fewer than two members.
[[nodiscard]] std::vector<std::string> member_directories(const std::vector<std::string>& places);

class Members {
 public:
  /// Loads the checkpoint `which` (auto, newest, best) of each run, with overrides of their jobs. Collective; the
  /// communicator and the registries must outlive it. Throws Error(configuration) if what they predict cannot be
  /// combined.
  Members(const std::vector<std::string>& directories, const std::vector<std::string>& overrides,
          const std::string& which, const Registries& registries, Communicator& communicator);

  [[nodiscard]] std::size_t size() const { return models_.size(); }
  [[nodiscard]] train::LoadedModel& model(std::size_t member) { return *models_[member]; }
  [[nodiscard]] const train::LoadedModel& model(std::size_t member) const { return *models_[member]; }
  [[nodiscard]] const train::LoadedModel& first() const { return *models_.front(); }
  [[nodiscard]] const std::string& directory(std::size_t member) const { return directories_[member]; }
  [[nodiscard]] Meaning meaning() const { return meaning_of(*first().outputs().front().loss); }

  /// A set of the first member's job, without what only its training does to it.
  [[nodiscard]] train::EvaluationSet open_set(const std::string& set) { return models_.front()->open_set(set); }

  /// Raw predictions by member, [samples, width], on every rank: the same bits for any number of ranks. Collective.
  [[nodiscard]] std::vector<std::vector<float>> predict(const DataSet& set);
  /// The same as probabilities or values.
  [[nodiscard]] std::vector<Table> tables(const std::vector<std::vector<float>>& raw) const;

 private:
  void require_alike() const;
  [[nodiscard]] std::size_t width() const;

  std::vector<std::string> directories_;
  Communicator& communicator_;
  std::vector<std::unique_ptr<train::LoadedModel>> models_;
};

}  // namespace lockstep::ensemble
