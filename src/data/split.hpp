// Parts of a data set: some of its samples as a set of their own, and the split into training and validation, before
// step 0.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/data_set.hpp"
#include "lockstep/job.hpp"

namespace lockstep::data {

/// Some samples of a set, in any order. `ids` are the whole set's. Class counts and digest are the view's own.
[[nodiscard]] std::unique_ptr<DataSet> make_view(std::shared_ptr<const DataSet> whole, std::vector<std::int64_t> ids);

/// `count` samples, spread evenly over the set: the first ones might all belong to one class. 0: all. All as well, with
/// a warning, if there are fewer.
[[nodiscard]] std::unique_ptr<DataSet> limit(std::unique_ptr<DataSet> whole, std::int64_t count);

/// As many samples as `whole` has, drawn from it with replacement, in order of ids: a function of the seed and the size
/// only (Efron, "Bootstrap Methods: Another Look at the Jackknife", 1979).
[[nodiscard]] std::unique_ptr<DataSet> bootstrap(std::shared_ptr<const DataSet> whole, std::uint64_t seed);

/// bytes_read() of each is that of the set they were cut from, so count only one of them.
struct Split {
  std::unique_ptr<DataSet> train, validation;
};

/// Exactly one of fraction, list and fold is set.
struct SplitOptions {
  double fraction = 0;  ///< of the samples, above 0 and below 1
  std::string list;     ///< a file with one sample per line: a name as returned by DataSet::name(), or an id
  std::uint64_t seed = 1;
  Fold fold = {};
  std::optional<bool> stratify = {};  ///< each class apart; none: of a fold, where there are classes
};

/// fraction: the validation set is the round(fraction * size) samples with the smallest Philox words of (seed, id);
/// both parts keep the order of ids. It depends only on the seed, the fraction and the size. Stratified: as many in
/// all, of each class its share, rounded such that the largest remainders are rounded up. For text and tokens, it is
/// the last fraction of the sequence. fold: samples in the order of their Philox words, stratified class after class,
/// are dealt to the folds in turn. So each sample is in exactly one fold, and folds differ by at most one sample, and
/// in at most one of each class. Throws Error(data) for a list that names unknown samples or leaves a part empty,
/// Error(configuration) for a fraction that leaves a part empty, for text in folds, and for what is to be stratified
/// without classes.
[[nodiscard]] Split split(const std::shared_ptr<const DataSet>& whole, const SplitOptions& options);

}  // namespace lockstep::data
