// What was learned of training data, and travels with the model: it turns raw input into tensors, and outputs back into
// words. Every checkpoint and every export has it, and whoever uses a model reads data through it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "data/sample_identities.hpp"
#include "data/statistics.hpp"
#include "lockstep/data_set.hpp"

namespace lockstep::input {

struct Schema {
  /// Of the training set: features, columns with their categories, classes in their order, tokenizer.
  DataSetInfo info;
  std::vector<double> mean, stddev;                        ///< of channels or columns; empty: not normalised
  std::map<std::string, data::ChannelStatistics> targets;  ///< by feature: of numbers to predict that are normalised
  /// Of the training and validation samples, as they are before resampling: which samples were held out.
  std::map<std::string, std::string> digests;
  data::IdentitySketch trained;  ///< the training samples, as far as they can be known again

  std::int64_t classes() const { return std::ssize(info.class_names); }
  /// As JSON, without what is said of single samples.
  std::string text() const;
  /// The inverse of text(). Throws Error(data) that begins with `where` if text() could not have written it.
  [[nodiscard]] static Schema parse(const std::string& text, const std::string& where);
};

/// In what `ours` reads samples otherwise than a model that has learned `theirs`, so that its weights would be of other
/// inputs or classes: columns, characters, the tokenizer, or the same classes in another order. Empty: in nothing.
[[nodiscard]] std::string other_reading(const DataSetInfo& theirs, const DataSetInfo& ours);

/// A warning for each column of numbers that are hardly those of the training set: half of them or more lie beyond ten
/// of its standard deviations, as where they have other units.
[[nodiscard]] std::vector<std::string> far_columns(const Schema& schema, const DataSet& set);

}  // namespace lockstep::input
