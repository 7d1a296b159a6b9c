// Whether the trials of a sweep can be ranked: what they are judged by must mean the same, and be of the same samples.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "config/sweep.hpp"

namespace lockstep::config {
namespace {

bool is_in(std::string_view path, std::string_view section) {
  return path == section || (path.starts_with(section) && path.substr(section.size()).starts_with('.'));
}

bool is_searched(const SweepFile& sweep, std::string_view section) {
  return std::any_of(sweep.parameters.begin(), sweep.parameters.end(),
                     [&](const SweepParameter& parameter) { return is_in(parameter.path, section); });
}

/// The setting of a source: "path" of data.train.table.path; empty: the source as a whole.
std::string_view source_setting(std::string_view path) {
  constexpr std::string_view kSource = "data.train.";
  if (!path.starts_with(kSource)) return {};
  path.remove_prefix(kSource.size());
  const auto dot = path.find('.');
  return dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1, path.find('.', dot + 1) - dot - 1);
}

template <std::size_t N>
bool is_one_of(std::string_view word, const std::array<std::string_view, N>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// Settings of a source that change how its samples are read, and not which samples there are.
constexpr std::array<std::string_view, 7> kSameSamples{"features", "except",  "categorical", "unknown",
                                                       "weight",   "weights", "class_folder"};
/// Those that a validation set of its own takes from the training set, and that change what is predicted.
constexpr std::array<std::string_view, 8> kTakenOver{"target",      "window",     "horizon",   "context",
                                                     "masked_span", "mask_token", "tokenizer", "masked"};

/// Text and time series hold their last part out, whatever the seed.
bool draws_by_seed(const DataOptions& data) {
  const auto& train = data.train;
  const bool in_order = train.kind == SourceKind::text || train.kind == SourceKind::tokens || train.window > 0;
  return (data.validation_fraction > 0 || data.validation_fold.of > 0) && !in_order;
}

}  // namespace

std::vector<Problem> incomparable_losses(const SweepFile& sweep) {
  std::vector<Problem> problems;
  if (sweep.metric != "loss") return problems;
  for (const SweepParameter& parameter : sweep.parameters) {
    if (!is_in(parameter.path, "loss") && parameter.path != "data.normalize_target") continue;
    problems.push_back({parameter.place,
                        "expected trials whose losses mean the same, since the sweep's metric is the "
                        "loss, found another loss in each; judge them by one of the job's metrics"});
  }
  return problems;
}

std::vector<std::string> other_validation_samples(const SweepFile& sweep, const JobFile& job) {
  const DataOptions& data = job.data;
  const bool folds = is_searched(sweep, "data.validation.fold");  // each sample is validated on once
  std::vector<std::string> warnings;
  for (const SweepParameter& parameter : sweep.parameters) {
    const std::string_view path = parameter.path;
    const char* remedy = nullptr;
    if (path == "data.split_seed" || (path == "seed" && !data.split_seed && !is_searched(sweep, "data.split_seed"))) {
      if (draws_by_seed(data) && !folds) remedy = "set one data.split_seed";
    } else if (is_in(path, "data.train")) {
      if (is_one_of(source_setting(path), kTakenOver)) {
        remedy = "search with each value in a sweep of its own";
      } else if (data.cuts_validation() && !is_one_of(source_setting(path), kSameSamples)) {
        remedy = "give data.validation a set of its own";
      }
    } else if (path == "data" || (is_in(path, "data.validation") && !is_in(path, "data.validation.fold"))) {
      remedy = "give all trials the same data.validation";
    }
    if (remedy == nullptr) continue;
    warnings.push_back(
        fmt::format("{}: changes what trials are validated on, so that the best one may be the one with "
                    "the easiest samples; {}",
                    parameter.place.text(), remedy));
  }
  return warnings;
}

}  // namespace lockstep::config
