// Cross-validation: what the trials of one setting come to over the folds of the data, `data.validation.fold`.
#pragma once

#include <string>
#include <vector>

#include "tools/sweep/study.hpp"

namespace lockstep::sweep {

inline constexpr const char* kFoldParameter = "data.validation.fold";

/// Trials that differ in the fold only, and are done.
struct OverFolds {
  Settings settings;  ///< without the fold
  std::vector<double> values;
  double mean() const;
  /// The standard deviation of the values, over n - 1; 0 of one value.
  double deviation() const;
};

/// The best mean first, of equal ones the first trial's; empty if the fold is no parameter of the sweep.
[[nodiscard]] std::vector<OverFolds> over_folds(const Study& study);

/// "accuracy 0.9312, deviation 0.0114, of 5 folds  (learning_rate 0.01)": one line each.
[[nodiscard]] std::vector<std::string> fold_lines(const Study& study);

}  // namespace lockstep::sweep
