// What a trained model needs to know of its training data: what a sample consists of, the names of classes, the text
// of tokens, the statistics of normalisation. Checkpoints keep it, so that a model is used where its data are not.
#pragma once

#include <string>

#include "input/prepared_data.hpp"

namespace lockstep::input {

/// As JSON, without samples.
[[nodiscard]] std::string data_facts(const PreparedData& data);

/// The other way: a training set that has no samples, but whose info() is as it was. Throws Error(data) that begins
/// with `where` when the facts are not such as data_facts() writes.
[[nodiscard]] PreparedData recall_data(const std::string& facts, const DataOptions& wanted, std::uint64_t seed,
                                       const AugmentRegistry& registry, const std::string& where);

}  // namespace lockstep::input
