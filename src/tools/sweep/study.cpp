#include "tools/sweep/study.hpp"

#include <algorithm>

namespace lockstep::sweep {

const char* name_of(TrialState state) {
  switch (state) {
    case TrialState::waiting:
      return "unfinished";
    case TrialState::paused:
      return "paused";
    case TrialState::done:
      return "done";
    case TrialState::failed:
      break;
  }
  return "failed";
}

void Study::begin(Settings settings, std::int64_t until, std::optional<Origin> origin) {
  Trial trial;
  trial.number = trials_.size();
  trial.settings = std::move(settings);
  trial.origin = origin;
  trial.until = until;
  trials_.push_back(std::move(trial));
}

void Study::promote(int trial, std::int64_t until) {
  Trial& promoted = trials_.at(trial);
  promoted.state = TrialState::waiting;
  promoted.until = until;
}

void Study::tell(int trial, const Result& result) {
  Trial& told = trials_.at(trial);
  told.state = result.finished ? TrialState::done : TrialState::paused;
  told.reports.push_back({result.steps, result.value});
  told.failed_on.clear();
  told.steps = result.steps;
  told.metrics = result.metrics;
  told.outcome = result.outcome;
  told.data = result.data;
  told.parameters_sha256 = result.parameters_sha256;
  told.device_seconds += result.device_seconds;
}

void Study::fail(int trial, const Failure& failure) {
  Trial& failed = trials_.at(trial);
  if (failure.counts) ++failed.failures;
  if (failure.code != 0) failed.failed_on[failure.place] = failure.code;
  failed.message = failure.message;
  failed.device_seconds += failure.device_seconds;
  if (failure.final) failed.state = TrialState::failed;
}

namespace {

/// Those that say which samples are read. Which of them are held out is another matter.
Settings sources_of(const Settings& settings) {
  Settings sources;
  for (const Setting& setting : settings) {
    const auto is_in = [&](const std::string& section) {
      return setting.path == section || setting.path.starts_with(section + ".");
    };
    const bool held_out = is_in("data.validation.fold") || is_in("data.validation.fraction");
    if (setting.path == "data" || is_in("data.train") || (is_in("data.validation") && !held_out)) {
      sources.push_back(setting);
    }
  }
  return sources;
}

bool has_changed(const TrialData& before, const TrialData& now) {
  return std::any_of(now.sources.begin(), now.sources.end(), [&](const auto& source) {
    const auto found = before.sources.find(source.first);
    return found != before.sources.end() && found->second != source.second;
  });
}

}  // namespace

const Trial* Study::trained_on_other(const TrialData& data, const Settings& settings) const {
  const Settings sources = sources_of(settings);
  const auto found = std::find_if(trials_.begin(), trials_.end(), [&](const Trial& trial) {
    if (data.samples.empty() || trial.data.samples.empty()) return false;
    const bool same_settings = sources_of(trial.settings) == sources;
    return (same_settings && trial.data.samples != data.samples) || has_changed(trial.data, data);
  });
  return found == trials_.end() ? nullptr : &*found;
}

bool Study::is_better(double value, double than) const {
  return options_.direction == Direction::maximize ? value > than : value < than;
}

const Trial* Study::best() const {
  const Trial* best = nullptr;
  for (const auto state : {TrialState::done, TrialState::paused}) {
    for (const auto& trial : trials_) {
      if (trial.state != state) continue;
      if (best == nullptr || is_better(trial.reports.back().value, best->reports.back().value)) best = &trial;
    }
    if (best != nullptr) return best;
  }
  return nullptr;
}

std::vector<const Trial*> Study::ancestry(const Trial& trial) const {
  std::vector<const Trial*> line = {&trial};
  while (line.back()->origin) line.push_back(&trials_.at(line.back()->origin->trial));
  return line;
}

bool Study::waits() const {
  return std::any_of(trials_.begin(), trials_.end(),
                     [](const Trial& trial) { return trial.state == TrialState::waiting; });
}

bool Study::may_begin() const {
  const SweepBudget& budget = options_.budget;
  std::int64_t steps = 0;
  double seconds = 0;
  for (const auto& trial : trials_) {
    steps += trial.steps;
    seconds += trial.device_seconds;
  }
  return (budget.trials == 0 || static_cast<std::int64_t>(trials_.size()) < budget.trials) &&
         (budget.steps == 0 || steps < budget.steps) && (budget.device_seconds == 0 || seconds < budget.device_seconds);
}

}  // namespace lockstep::sweep
