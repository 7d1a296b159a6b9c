// What a trained model needs to know about its training data: the features of a sample, the names of classes, the text
// of tokens, the statistics of normalisation. Checkpoints store it, so that a model can be used without its data.
#pragma once

#include <memory>
#include <string>

#include "input/prepared_data.hpp"

namespace lockstep::input {

/// A set without samples that has this info().
[[nodiscard]] std::shared_ptr<const DataSet> set_without_samples(DataSetInfo info);

/// As JSON, without samples.
[[nodiscard]] std::string data_facts(const PreparedData& data);

/// The inverse: a training set without samples, but with the original info(). Throws Error(data) that begins with
/// `where` if data_facts() could not have written the facts.
[[nodiscard]] PreparedData recall_data(const std::string& facts, const DataOptions& wanted, std::uint64_t seed,
                                       const DataRegistries& registries, const std::string& where);

/// What the facts say of the training set. Throws as recall_data().
[[nodiscard]] DataSetInfo recall_info(const std::string& facts, const std::string& where);

/// In what `ours` reads samples otherwise than a model that has learned `theirs`, so that its weights would be of other
/// inputs or classes: columns, characters, the tokenizer, or the same classes in another order. Empty: in nothing.
[[nodiscard]] std::string other_reading(const DataSetInfo& theirs, const DataSetInfo& ours);

}  // namespace lockstep::input
