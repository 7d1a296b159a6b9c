#include "cli/evaluation_details.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "observe/telemetry/text.hpp"
#include "ops/auc/area_under_curve.hpp"

namespace lockstep::cli {

namespace {

using ensemble::Meaning;

constexpr std::size_t kMostValues = 32;      // values that are worth a row each
constexpr double kLeastProbability = 1e-12;  // smaller ones count as this, so that a loss is finite
constexpr std::size_t kMostAreas = 200;      // classes or labels whose areas under the curve are computed
constexpr std::size_t kConfusedMost = 5;     // pairs that are told to people

double surprise(double probability) {
  return -std::log(std::max(probability, kLeastProbability));
}

double share(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / whole;
}

/// Samples by their loss.
class Worst {
 public:
  explicit Worst(std::size_t count) : count_(count) {}
  void add(std::size_t id, double loss) {
    const double bounded = std::isfinite(loss) ? loss : std::numeric_limits<double>::max();
    all_.emplace_back(-bounded, static_cast<std::int64_t>(id));
  }
  [[nodiscard]] std::vector<WorstSample> samples() {
    std::sort(all_.begin(), all_.end());
    if (all_.size() > count_) all_.resize(count_);
    std::vector<WorstSample> samples;
    for (const auto& [less, id] : all_) {
      samples.push_back({.id = id, .loss = -less, .name = {}, .actual = {}, .predicted = {}, .png = {}});
    }
    return samples;
  }

 private:
  std::size_t count_;
  std::vector<std::pair<double, std::int64_t>> all_;
};

/// What is judged, and whatever the numbers of a prediction mean.
struct Judged {
  const std::vector<SamplePrediction>& predictions;
  const ensemble::Targets& targets;
  const std::vector<std::string>& names;

  std::size_t width() const { return predictions.empty() ? 0 : predictions.front().values.size(); }
  const std::vector<double>& values(std::size_t sample) const { return predictions[sample].values; }
  double target(std::size_t sample, std::size_t k) const { return targets.values[sample * width() + k]; }
  /// None if the target is no class.
  std::optional<std::size_t> target_class(std::size_t sample) const {
    const std::int64_t target = targets.classes[sample];
    const bool is_class = target >= 0 && target < static_cast<std::int64_t>(width());
    return is_class ? std::optional(static_cast<std::size_t>(target)) : std::nullopt;
  }
  double unit(std::size_t k) const { return targets.units.empty() ? 1 : targets.units.at(k); }
  std::string name(std::size_t k) const { return k < names.size() ? names[k] : fmt::format("{}", k); }
};

/// By class or label, how many samples are it, are predicted as it, and both.
struct Counts {
  explicit Counts(std::size_t width) : actual(width), predicted(width), right(width) {}
  void add(std::size_t k, bool is, bool said) {
    actual[k] += is ? 1 : 0, predicted[k] += said ? 1 : 0, right[k] += is && said ? 1 : 0;
  }
  std::vector<DetailsRow> rows(const Judged& judged) const {
    std::vector<DetailsRow> rows;
    for (std::size_t k = 0; k < actual.size(); ++k) {
      rows.push_back({.name = judged.name(k),
                      .samples = actual[k],
                      .precision = share(right[k], predicted[k]),
                      .recall = share(right[k], actual[k])});
    }
    return rows;
  }
  std::vector<std::int64_t> actual, predicted, right;
};

/// `is(sample, k)`: whether a sample is of class or label k; nullopt if it does not count.
void add_areas(const Judged& judged, const std::function<std::optional<bool>(std::size_t, std::size_t)>& is,
               std::vector<DetailsRow>& rows) {
  for (std::size_t k = 0; k < rows.size() && rows.size() <= kMostAreas; ++k) {
    std::vector<std::pair<double, bool>> scores;
    for (std::size_t i = 0; i < judged.predictions.size(); ++i) {
      const auto found = is(i, k);
      if (!found) continue;
      if (std::isnan(judged.values(i)[k])) return;
      scores.emplace_back(judged.values(i)[k], *found);
    }
    rows[k].auc = ops::area_under_curve(std::move(scores));
  }
}

void judge_classes(const Judged& judged, EvaluationDetails& details, Worst& worst) {
  Counts counts(judged.width());
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> pairs;
  for (std::size_t i = 0; i < judged.predictions.size(); ++i) {
    const auto actual = judged.target_class(i);
    if (!actual) continue;
    const std::size_t best = ensemble::largest_of(judged.values(i));
    counts.add(*actual, true, best == *actual);
    if (best != *actual) counts.add(best, false, true);
    ++details.samples;
    ++pairs[{static_cast<std::int64_t>(*actual), static_cast<std::int64_t>(best)}];
    worst.add(i, surprise(judged.values(i)[*actual]));
  }
  details.rows = counts.rows(judged);
  const auto is = [&](std::size_t i, std::size_t k) {
    const auto actual = judged.target_class(i);
    return actual ? std::optional(*actual == k) : std::nullopt;
  };
  add_areas(judged, is, details.rows);
  for (const auto& [pair, samples] : pairs) details.confusions.push_back({pair.first, pair.second, samples});
}

void describe_class(const Judged& judged, WorstSample& sample) {
  const std::size_t i = sample.id;
  const std::size_t best = ensemble::largest_of(judged.values(i));
  sample.actual = judged.name(judged.target_class(i).value());
  sample.predicted = fmt::format("{} ({:.4f})", judged.name(best), judged.values(i)[best]);
}

void judge_labels(const Judged& judged, EvaluationDetails& details, Worst& worst) {
  Counts counts(judged.width());
  for (std::size_t i = 0; i < judged.predictions.size(); ++i) {
    double loss = 0;
    for (std::size_t k = 0; k < judged.width(); ++k) {
      const double target = judged.target(i, k), probability = judged.values(i)[k];
      loss += target * surprise(probability) + (1 - target) * surprise(1 - probability);
      counts.add(k, target > 0.5, probability > 0.5);
    }
    worst.add(i, loss);
  }
  details.samples = std::ssize(judged.predictions);
  details.rows = counts.rows(judged);
  add_areas(
      judged, [&](std::size_t i, std::size_t k) { return std::optional(judged.target(i, k) > 0.5); }, details.rows);
}

void describe_labels(const Judged& judged, WorstSample& sample) {
  const std::size_t i = sample.id;
  std::vector<std::string> actual, predicted;
  for (std::size_t k = 0; k < judged.width(); ++k) {
    const bool is = judged.target(i, k) > 0.5;
    const double probability = judged.values(i)[k];
    if (is) actual.push_back(judged.name(k));
    if (is || probability > 0.5) predicted.push_back(fmt::format("{} ({:.4f})", judged.name(k), probability));
  }
  sample.actual = actual.empty() ? "none" : fmt::format("{}", fmt::join(actual, ", "));
  sample.predicted = predicted.empty() ? "none" : fmt::format("{}", fmt::join(predicted, ", "));
}

void judge_values(const Judged& judged, EvaluationDetails& details, Worst& worst) {
  const std::size_t width = judged.width();
  std::vector<double> absolute(width), squared(width);
  for (std::size_t i = 0; i < judged.predictions.size(); ++i) {
    double loss = 0;
    for (std::size_t k = 0; k < width; ++k) {
      const double error = judged.values(i)[k] - judged.target(i, k), in_units = error / judged.unit(k);
      absolute[k] += std::abs(error), squared[k] += error * error, loss += in_units * in_units;
    }
    worst.add(i, loss / width);
  }
  details.samples = std::ssize(judged.predictions);
  const double samples = details.samples;
  for (std::size_t k = 0; k < width && width <= kMostValues; ++k) {
    details.rows.push_back({.name = judged.name(k),
                            .samples = details.samples,
                            .absolute_error = absolute[k] / samples,
                            .root_squared_error = std::sqrt(squared[k] / samples)});
  }
}

void describe_values(const Judged& judged, WorstSample& sample) {
  if (judged.width() > kMostValues) return;
  const std::size_t i = sample.id;
  std::vector<std::string> actual, predicted;
  for (std::size_t k = 0; k < judged.width(); ++k) {
    actual.push_back(telemetry::short_number(judged.target(i, k)));
    predicted.push_back(telemetry::short_number(judged.values(i)[k]));
  }
  sample.actual = fmt::format("{}", fmt::join(actual, ", "));
  sample.predicted = fmt::format("{}", fmt::join(predicted, ", "));
}

struct Kind {
  void (*judge)(const Judged&, EvaluationDetails&, Worst&);
  void (*describe)(const Judged&, WorstSample&);
};

Kind kind_of(Meaning meaning) {
  switch (meaning) {
    case Meaning::classes:
      return {judge_classes, describe_class};
    case Meaning::probabilities:
      return {judge_labels, describe_labels};
    case Meaning::values:
      break;
  }
  return {judge_values, describe_values};
}

}  // namespace

double f1_of(const DetailsRow& row) {
  const double sum = row.precision + row.recall;
  return sum > 0 ? 2 * row.precision * row.recall / sum : 0;
}

std::vector<Confusion> confused_most(const EvaluationDetails& details) {
  std::vector<Confusion> wrong;
  for (const Confusion& pair : details.confusions) {
    if (pair.actual != pair.predicted) wrong.push_back(pair);
  }
  std::stable_sort(wrong.begin(), wrong.end(), [](const auto& a, const auto& b) { return a.samples > b.samples; });
  return wrong;
}

EvaluationDetails details_of(Meaning meaning, const std::vector<SamplePrediction>& predictions,
                             const ensemble::Targets& targets, const std::vector<std::string>& names, std::size_t count,
                             const std::function<void(WorstSample&)>& finish) {
  const Judged judged{predictions, targets, names};
  const Kind kind = kind_of(meaning);
  EvaluationDetails details{.meaning = meaning};
  Worst worst(count);
  kind.judge(judged, details, worst);
  details.worst = worst.samples();
  for (WorstSample& sample : details.worst) {
    kind.describe(judged, sample);
    finish(sample);
  }
  return details;
}

std::string details_text(const EvaluationDetails& details) {
  const bool values = details.meaning == Meaning::values;
  std::size_t width = 12;
  for (const DetailsRow& row : details.rows) width = std::max(width, row.name.size());
  std::string text;
  if (!details.rows.empty()) {
    text += values ? fmt::format("  {:<{}} {:>10} {:>10}\n", "value", width, "mae", "rmse")
                   : fmt::format("  {:<{}} {:>10} {:>10} {:>10} {:>10} {:>10}\n",
                                 details.meaning == Meaning::classes ? "class" : "label", width, "samples", "precision",
                                 "recall", "f1", "auc");
  }
  for (const DetailsRow& row : details.rows) {
    text += values ? fmt::format("  {:<{}} {:>10.4g} {:>10.4g}\n", row.name, width, row.absolute_error,
                                 row.root_squared_error)
                   : fmt::format("  {:<{}} {:>10} {:>10.4f} {:>10.4f} {:>10.4f} {:>10}\n", row.name, width,
                                 telemetry::grouped(row.samples), row.precision, row.recall, f1_of(row),
                                 row.auc ? fmt::format("{:.4f}", *row.auc) : "");
  }
  std::vector<std::string> pairs;
  for (const Confusion& pair : confused_most(details)) {
    if (pairs.size() == kConfusedMost) break;
    pairs.push_back(fmt::format("{} as {} ({})", details.rows[pair.actual].name, details.rows[pair.predicted].name,
                                telemetry::grouped(pair.samples)));
  }
  if (!pairs.empty()) text += fmt::format("  most often taken for another: {}\n", fmt::join(pairs, ", "));
  if (!details.worst.empty()) {
    const WorstSample& sample = details.worst.front();
    text +=
        fmt::format("  worst: {}, loss {:.4g}{}\n", sample.name, sample.loss,
                    sample.actual.empty() ? "" : fmt::format(", is {}, predicted {}", sample.actual, sample.predicted));
  }
  return text;
}

}  // namespace lockstep::cli
