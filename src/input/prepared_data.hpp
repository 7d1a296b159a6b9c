// The data of a job, opened and checked: sets, normalisation, and the features that a step gets.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/cache_directory.hpp"
#include "data/augment.hpp"
#include "data/replacing_set.hpp"
#include "data/statistics.hpp"
#include "data/target_range.hpp"
#include "input/source_indexes.hpp"
#include "lockstep/communicator.hpp"
#include "lockstep/data_set.hpp"
#include "lockstep/job.hpp"

namespace lockstep::input {

struct PreparedData {
  std::vector<AugmentOptions> prepare, augment;            ///< steps for every sample; steps for training only
  const DataRegistries* registries = nullptr;              ///< of steps and readers
  std::uint64_t seed = 0;                                  ///< of augmentation
  std::shared_ptr<const DataSet> train, validation, test;  ///< validation and test may be null
  std::vector<double> mean, stddev;                        ///< empty: not normalised
  std::map<std::string, data::ChannelStatistics> targets;  ///< by feature: of numbers to predict that are normalised
  std::vector<data::TargetRange> target_ranges;            ///< of training and validation set
  std::vector<Feature> features;                           ///< as a step gets them
  std::int64_t classes = 0, vocabulary = 0;
  std::vector<double> class_weights;           ///< of training samples; empty: all alike
  bool is_cut = false;                         ///< validation is part of train's source
  std::map<std::string, std::string> digests;  ///< of training and validation samples, as they are before resampling
  std::map<std::string, data::ChannelStatistics> statistics;  ///< by set, if requested
  /// Samples that were replaced by others (data.bad_samples: replace); never null.
  std::shared_ptr<data::ReplacedSamples> replaced = std::make_shared<data::ReplacedSamples>();
  std::vector<IndexReport> indexes;        ///< of the sets that were indexed, on the rank that did it
  std::shared_ptr<SourceIndexes> sources;  ///< null if the data are only remembered (data_facts.hpp)

  /// `training`: with augmentation.
  [[nodiscard]] data::Pipeline pipeline(const DataSet& set, bool training) const;
  /// Sets how samples are processed, and what follows from the training set's info: features, classes, vocabulary.
  void describe(const DataOptions& options, std::uint64_t stream_seed, const DataRegistries& known);
  /// Hash of training and validation set: compared between ranks and stored in checkpoints.
  [[nodiscard]] std::string digest() const;
  /// Whether nothing had to be indexed.
  [[nodiscard]] bool was_cached() const;
  /// warnings_of() each set.
  [[nodiscard]] std::vector<std::string> warnings() const;
  /// How the loss counts the samples of training: "by class: cat 0.75, dog 1.5"; empty: all alike.
  [[nodiscard]] std::string weights_text() const;
  /// Bytes that this process has read from files, for all sets.
  [[nodiscard]] std::uint64_t bytes_read() const;
};

/// Messages about a set, each after `prefix`: which samples were skipped, and the set's own warnings.
[[nodiscard]] std::vector<std::string> warnings_of(const DataSetInfo& set, const std::string& prefix = "");

struct PrepareOptions {
  /// One rank of each host indexes for all ranks on it; null: this process is alone.
  Communicator* communicator = nullptr;
  /// What a model knows of its training set; null: it is learned here.
  const DataSetInfo* known = nullptr;
  bool with_test = false;                                     ///< also opens job.data.test, if there is one
  bool with_statistics = false;                               ///< computes them for each set
  std::string cache_directory = lockstep::cache_directory();  ///< where indexes are kept; empty: nowhere
};

/// `wanted`, `seed` and `batch_size` are the job's; the training set must have enough samples for a batch.
/// `registries` must outlive what is made with them.
[[nodiscard]] PreparedData prepare_data(const DataOptions& wanted, std::uint64_t seed, std::int64_t batch_size,
                                        const DataRegistries& registries, const DataSets& own,
                                        const PrepareOptions& options = {});

}  // namespace lockstep::input
