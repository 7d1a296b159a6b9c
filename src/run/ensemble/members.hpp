// The members of an ensemble: found in directories, loaded, and asked for predictions side by side.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lockstep/communicator.hpp"
#include "lockstep/trainer.hpp"
#include "run/ensemble/combine.hpp"
#include "run/ensemble/fit.hpp"
#include "run/train/loaded_model.hpp"

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

  std::size_t size() const { return models_.size(); }
  [[nodiscard]] train::LoadedModel& model(std::size_t member) { return *models_[member]; }
  const train::LoadedModel& model(std::size_t member) const { return *models_[member]; }
  const train::LoadedModel& first() const { return *models_.front(); }
  const std::string& directory(std::size_t member) const { return directories_[member]; }
  Meaning meaning() const { return meaning_of(*first().outputs().front().loss); }

  /// A set of the members' jobs, without what only training does to it, as each member reads it: with the columns, the
  /// categories and the tokens that it has learned. Collective. Throws Error(configuration) if the members have other
  /// samples, or targets, than the first.
  [[nodiscard]] std::vector<train::EvaluationSet> open_sets(const std::string& set);

  /// As open_sets(), but each member has the samples of validation that it was not trained on, its fold
  /// (data.validation.fold). Collective. Throws Error(configuration) unless the members' folds are those of one split,
  /// and each fold has a member.
  [[nodiscard]] std::vector<train::EvaluationSet> open_folds();
  /// By fold the members that have held it out.
  std::vector<std::vector<std::size_t>> folds() const;

  /// Raw predictions by member, [samples, width], on every rank: the same bits for any number of ranks. Collective.
  [[nodiscard]] std::vector<std::vector<float>> predict(const std::vector<train::EvaluationSet>& by_member);
  /// The same by some members only, whose sets have the same number of samples; in their order.
  [[nodiscard]] std::vector<std::vector<float>> predict(const std::vector<train::EvaluationSet>& by_member,
                                                        const std::vector<std::size_t>& some);
  /// Throws Error(configuration) if a member has learned to read samples in another way than `set` does.
  void require_reading(const DataSetInfo& set) const;
  /// The same of one set for all members; throws as require_reading().
  [[nodiscard]] std::vector<std::vector<float>> predict(const DataSet& set);
  /// The same as probabilities or values.
  std::vector<Table> tables(const std::vector<std::vector<float>>& raw) const;

 private:
  void require_alike() const;
  /// `sets`: by member, those of `some`.
  [[nodiscard]] std::vector<std::vector<float>> predict(const std::vector<const DataSet*>& sets,
                                                        const std::vector<std::size_t>& some);
  std::vector<std::size_t> all_members() const;
  std::size_t width() const;

  std::vector<std::string> directories_;
  Communicator& communicator_;
  std::vector<std::unique_ptr<train::LoadedModel>> models_;
};

}  // namespace lockstep::ensemble
