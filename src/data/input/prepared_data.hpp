// The data of a job: learn() opens and checks the sets, and makes the schema; apply() uses a schema that a model has.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/cache_directory.hpp"
#include "data/augment.hpp"
#include "data/input/schema.hpp"
#include "data/input/source_indexes.hpp"
#include "data/replacing_set.hpp"
#include "data/target_range.hpp"
#include "lockstep/communicator.hpp"
#include "lockstep/data_set.hpp"
#include "lockstep/job.hpp"

namespace lockstep::input {

struct PreparedData {
  Schema schema;
  std::vector<AugmentOptions> prepare, augment;               ///< steps for every sample; steps for training only
  const DataRegistries* registries = nullptr;                 ///< of steps and readers
  std::uint64_t seed = 0;                                     ///< of augmentation
  std::shared_ptr<const DataSet> train, validation, test;     ///< null: not open, or the job has none
  std::vector<data::TargetRange> target_ranges;               ///< of training and validation set
  std::vector<Feature> features;                              ///< as a step gets them
  std::vector<double> class_weights;                          ///< of training samples; empty: all alike
  bool is_cut = false;                                        ///< validation is part of train's source
  std::string sources_digest;                                 ///< of training and validation, before anything is cut
  std::map<std::string, data::ChannelStatistics> statistics;  ///< by set, if requested
  /// Samples that were replaced by others (data.bad_samples: replace); never null.
  std::shared_ptr<data::ReplacedSamples> replaced = std::make_shared<data::ReplacedSamples>();
  std::vector<IndexReport> indexes;        ///< of the sets that were indexed, on the rank that did it
  std::shared_ptr<SourceIndexes> sources;  ///< of learn(); else null
  std::vector<std::uint64_t> identities;   ///< data::sketch_of() training samples: all of them, or none

  /// `training`: with augmentation.
  data::Pipeline pipeline(const DataSet& set, bool training) const;
  /// Sets how samples are processed, and the features of a step that follow from it.
  void describe(const DataOptions& options, std::uint64_t stream_seed, const DataRegistries& known);
  /// Hash of training and validation set: compared between ranks and stored in checkpoints.
  std::string digest() const;
  /// Whether nothing had to be indexed.
  bool was_cached() const;
  /// warnings_of() each set.
  std::vector<std::string> warnings() const;
  /// How the loss counts the samples of training: "by class: cat 0.75, dog 1.5"; empty: all alike.
  std::string weights_text() const;
  /// Bytes that this process has read from files, for all sets.
  std::uint64_t bytes_read() const;
};

/// Messages about a set, each after `prefix`: which samples were skipped, and the set's own warnings.
[[nodiscard]] std::vector<std::string> warnings_of(const DataSetInfo& set, const std::string& prefix = "");

/// Of a training set whose samples have a class each: that all have the same one; else "".
[[nodiscard]] std::string lone_class(const DataSetInfo& info);

/// What a set that a model is evaluated on has in common with its training set, as far as the schema tells; else "".
/// `is_cut`: the set is the part of the training set's source that was held out.
[[nodiscard]] std::string shared_with_training(const Schema& schema, const DataSet& set, bool is_cut);

struct LearnOptions {
  /// One rank of each host indexes for all ranks on it; null: this process is alone.
  Communicator* communicator = nullptr;
  bool with_test = false;                                     ///< also opens job.data.test, if there is one
  bool with_statistics = false;                               ///< computes them for each set
  std::string cache_directory = lockstep::cache_directory();  ///< where indexes are kept; empty: nowhere
};

/// Opens the sets of a job, all through the schema that the training set teaches. `wanted`, `seed` and `batch_size` are
/// the job's; the training set must have enough samples for a batch. `registries` must outlive what is made with them.
[[nodiscard]] PreparedData learn(const DataOptions& wanted, std::uint64_t seed, std::int64_t batch_size,
                                 const DataRegistries& registries, const DataSets& own,
                                 const LearnOptions& options = {});

/// Data as the model reads them that has learned `schema`. No set is open.
[[nodiscard]] PreparedData apply(Schema schema, const DataOptions& wanted, std::uint64_t seed,
                                 const DataRegistries& registries);

/// Opens `source`, as the job's set `name`, through the schema of `model`. Collective.
[[nodiscard]] std::shared_ptr<const DataSet> open_set(const PreparedData& model, const std::string& name,
                                                      const SourceOptions& source, Communicator& communicator);

/// Opens the training set of the model, or what was cut from it for validation. Throws Error(data) if its samples are
/// not those of then: only of these it is known which the model was trained on. Collective.
[[nodiscard]] PreparedData open_as_trained(const PreparedData& model, const std::string& name, const JobFile& job,
                                           const DataSets& own, Communicator& communicator);

}  // namespace lockstep::input
