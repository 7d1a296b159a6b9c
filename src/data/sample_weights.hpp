// Weights of samples: how much the loss of each counts in training. They are one more feature of a sample, of kind
// `weight`, which the loss reads.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/data_set.hpp"
#include "lockstep/job.hpp"

namespace lockstep::data {

/// The name of the feature.
inline constexpr const char* kSampleWeight = "sample_weight";
[[nodiscard]] inline Feature weight_feature() {
  return {kSampleWeight, Feature::Kind::weight, {DType::f32, {}}};
}

/// Throws Error(data) if no weight is above 0: a mean over such samples is none.
void require_weight(std::span<const float> weights, const std::string& place);

[[nodiscard]] bool has_weights(const DataSetInfo& info);

/// The weight of each class of a training set, by number. `balanced`: samples / (classes * samples of the class), where
/// only classes that have samples count; one without has 0. Throws Error(configuration), with the setting's place, for
/// a set without classes, a class that it does not have, a list of another length, and if no sample counts.
[[nodiscard]] std::vector<double> class_weights(const DataSetInfo& info, const ClassWeightOptions& options);

/// A training set whose samples have the product of their own weight, if they have one, and their class's.
[[nodiscard]] std::shared_ptr<const DataSet> with_class_weights(std::shared_ptr<const DataSet> whole,
                                                                const std::vector<double>& by_class);

/// A set to evaluate, where each sample counts 1.
[[nodiscard]] std::shared_ptr<const DataSet> with_equal_weights(std::shared_ptr<const DataSet> whole);

/// A set with the weights of a file, a number a line, in the order of the samples. Throws Error(data) for a line that
/// is no number of at least 0, and for another number of lines.
[[nodiscard]] std::unique_ptr<DataSet> with_weights_of(std::unique_ptr<DataSet> whole, const std::string& path);

/// A weight as text: finite and at least 0; none if it is anything else.
[[nodiscard]] std::optional<float> parse_weight(const std::string& text);

}  // namespace lockstep::data
