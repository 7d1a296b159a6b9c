// The data of a job, opened and checked: sets, normalisation, and what the step will see.
#pragma once

#include <memory>
#include <vector>

#include "data/augment.hpp"
#include "lockstep/data_set.hpp"
#include "lockstep/job.hpp"
#include "lockstep/trainer.hpp"

namespace lockstep::train {

struct PreparedData {
  std::shared_ptr<const DataSet> train, validation;  ///< validation may be null
  std::vector<double> mean, deviation;               ///< empty: not normalised
  std::vector<Feature> features;                     ///< as the step gets them
  std::int64_t classes = 0, vocabulary = 0;

  /// `training`: with augmentation.
  [[nodiscard]] data::Pipeline pipeline(const Job& job, const AugmentRegistry& registry, const DataSet& set,
                                        bool training) const;
  /// Fills what follows from the training set's info: features, classes, vocabulary.
  void describe(const Job& job, const AugmentRegistry& registry);
  /// Hash of both sets: compared between ranks and kept in checkpoints.
  [[nodiscard]] std::string digest() const;
};

[[nodiscard]] PreparedData prepare_data(const Job& job, const AugmentRegistry& registry, const DataSets& own);

}  // namespace lockstep::train
