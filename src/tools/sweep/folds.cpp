#include "tools/sweep/folds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace lockstep::sweep {

double OverFolds::mean() const {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / values.size();
}

double OverFolds::deviation() const {
  if (values.size() < 2) return 0;
  const double middle = mean();
  double squares = 0;
  for (const double value : values) squares += (value - middle) * (value - middle);
  return std::sqrt(squares / (values.size() - 1));
}

std::vector<OverFolds> over_folds(const Study& study) {
  std::vector<OverFolds> all;
  for (const Trial& trial : study.trials()) {
    if (trial.state != TrialState::done || trial.reports.empty()) continue;
    Settings others = trial.settings;
    if (std::erase_if(others, [](const auto& setting) { return setting.path == kFoldParameter; }) == 0) continue;
    auto found = std::find_if(all.begin(), all.end(), [&](const OverFolds& one) { return one.settings == others; });
    if (found == all.end()) found = all.insert(all.end(), {others, {}});
    found->values.push_back(trial.reports.back().value);
  }
  std::stable_sort(all.begin(), all.end(),
                   [&](const OverFolds& a, const OverFolds& b) { return study.is_better(a.mean(), b.mean()); });
  return all;
}

std::vector<std::string> fold_lines(const Study& study) {
  std::vector<std::string> lines;
  for (const OverFolds& one : over_folds(study)) {
    lines.push_back(fmt::format("{} {:.4f}, deviation {:.4f}, of {} fold{}{}", study.options().metric, one.mean(),
                                one.deviation(), one.values.size(), one.values.size() == 1 ? "" : "s",
                                one.settings.empty() ? "" : fmt::format("  ({})", text(one.settings))));
  }
  return lines;
}

}  // namespace lockstep::sweep
