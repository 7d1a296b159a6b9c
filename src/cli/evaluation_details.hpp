// What lies behind the metrics of an evaluation: which classes are taken for which, and which samples come off worst.
// `lockstep eval --details` writes it into the run directory, where `lockstep report` finds it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/predict.hpp"
#include "run/ensemble/combine.hpp"
#include "run/ensemble/outcome.hpp"

namespace lockstep::cli {

/// A class, a label of several, or a number that is predicted.
struct DetailsRow {
  std::string name;
  std::int64_t samples = 0;  ///< classes and labels: with this target; values: all
  /// Classes and labels: the shares that are right of those that are predicted as this, and of those that are this.
  /// Values: the mean of the errors' absolute values, and the root of that of their squares.
  double precision = 0, recall = 0, absolute_error = 0, root_squared_error = 0;
  /// Classes and labels: the area under the curve of true against false positives, that is, how often a sample that is
  /// this is given a higher probability of it than one that is not, with equal ones as half. None where all are, or
  /// none is, or where there are more classes than are worth it.
  std::optional<double> auc;
  bool operator==(const DetailsRow&) const = default;
};

struct Confusion {
  std::int64_t actual = 0, predicted = 0, samples = 0;
  bool operator==(const Confusion&) const = default;
};

/// How badly one sample was predicted: the negative logarithm of the probability of its class, the sum of those of its
/// labels, or the mean squared error of its values (in Targets::units).
struct WorstSample {
  std::int64_t id = 0;
  double loss = 0;
  std::string name, actual, predicted;
  std::string png;  ///< base64; empty: no image
  bool operator==(const WorstSample&) const = default;
};

struct EvaluationDetails {
  std::string set, checkpoint;
  std::int64_t step = 0, samples = 0;
  ensemble::Meaning meaning = ensemble::Meaning::classes;
  std::vector<DetailsRow> rows;       ///< empty: more values than are worth a row each
  std::vector<Confusion> confusions;  ///< classes: each pair that occurs, also of equals; by class
  std::vector<WorstSample> worst;     ///< from the worst on; of equals the first comes first
  bool operator==(const EvaluationDetails&) const = default;
};

/// Of predictions, by sample, and targets. `names`: of the classes; others have numbers. Samples whose class is not
/// one (-1) are left out. Pure but for `finish`, which is called for each of the `count` worst, to add name and image.
[[nodiscard]] EvaluationDetails details_of(ensemble::Meaning meaning, const std::vector<SamplePrediction>& predictions,
                                           const ensemble::Targets& targets, const std::vector<std::string>& names,
                                           std::size_t count, const std::function<void(WorstSample&)>& finish);

/// The harmonic mean of precision and recall; 0 if both are.
[[nodiscard]] double f1_of(const DetailsRow& row);
/// Pairs of different classes, from the most frequent on.
[[nodiscard]] std::vector<Confusion> confused_most(const EvaluationDetails& details);

/// For people: a line for each row, and what is confused most often.
[[nodiscard]] std::string details_text(const EvaluationDetails& details);

/// Writes the details of a set into a run's directory; returns the file. Throws Error(cannot_create).
std::string write_details(const std::string& run_directory, const EvaluationDetails& details);
/// Of a set (validation, test, train); nullopt if there are none. Throws Error(data) if the file is damaged.
[[nodiscard]] std::optional<EvaluationDetails> read_details(const std::string& run_directory, const std::string& set);

}  // namespace lockstep::cli
