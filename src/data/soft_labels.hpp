// Labels as probabilities: a set whose label is no class number but a weight for each class, to distil an ensemble into
// one model (Hinton, Vinyals and Dean, "Distilling the Knowledge in a Neural Network", 2015). Losses and metrics of
// classes take either.
#pragma once

#include <memory>
#include <string>

#include "lockstep/data_set.hpp"
#include "lockstep/job.hpp"

namespace lockstep::data {

/// The training set `whole`, its label [classes] f32: weight * q + (1 - weight) * (1 for the label's class, else 0), in
/// double, rounded once. q are the file's probabilities to the power 1 / temperature, normalised; it has them by sample
/// id, and the digest of the set that they were made for. Throws Error(data) for a file that is damaged or belongs to
/// another set, Error(configuration) for a set without classes.
[[nodiscard]] std::shared_ptr<const DataSet> with_soft_labels(std::shared_ptr<const DataSet> whole,
                                                              const SoftLabelOptions& options);

/// Whether training samples have labels of that form, and so all sets.
[[nodiscard]] inline bool has_soft_labels(const DataOptions& options) {
  return options.soft_labels || options.mix;
}

/// A set with labels of that form: 1 for the label's class, 0 for the others.
[[nodiscard]] std::shared_ptr<const DataSet> with_one_hot_labels(std::shared_ptr<const DataSet> whole);

/// A set as its source has it, of what such a set says of itself.
[[nodiscard]] DataSetInfo with_hard_labels(DataSetInfo info);

/// Names in the file: of the tensor [samples, classes] f32, and of the set's digest among its metadata.
inline constexpr const char* kProbabilitiesTensor = "probabilities";
inline constexpr const char* kSamplesDigest = "samples_digest";

}  // namespace lockstep::data
