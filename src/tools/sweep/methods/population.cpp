// Population based training: members are trained for a generation, then the worst of them are replaced by copies of the
// best, weights and optimizer state, with perturbed settings.
// Source: Jaderberg et al., "Population based training of neural networks", 2017: truncation selection, and perturbing
// or resampling to explore (section 4).
//
// The paper's members are asynchronous. Here a generation ends when all its members have come to its end or have
// failed, and what follows is a function of their values, so that slots and their speed change nothing. A member that
// is replaced stays as a trial that is paused for good; its copy is a new trial, whose origin is the checkpoint. All
// copies of a generation begin before any of its other members goes on: what they copy is still there then.
#include <algorithm>

#include "tools/sweep/method.hpp"

namespace lockstep::sweep {

namespace {

/// Draws of a copy, beside 0, which random_settings() makes.
enum Draw : std::uint32_t { resampled = 1, direction = 2, donor = 3 };

struct Member {
  int trial = 0;
  std::optional<Origin> origin;
};

const Report* report_at(const Trial& trial, std::int64_t steps) {
  const auto found = std::find_if(trial.reports.begin(), trial.reports.end(),
                                  [&](const Report& report) { return report.steps == steps; });
  return found == trial.reports.end() ? nullptr : &*found;
}

Settings explored(const SweepOptions& options, const Settings& copied, int trial) {
  const std::uint64_t number = trial;
  Settings settings;
  for (const auto& parameter : options.parameters) {
    if (!is_active(parameter, settings)) continue;
    const auto drawn = [&](Draw what) { return uniform(options.seed, parameter.path, number, what); };
    const std::string* value = value_of(copied, parameter.path);
    const bool anew = value == nullptr || drawn(resampled) < options.population.resample;
    const double change = drawn(direction) < 0.5 ? -options.population.perturb : options.population.perturb;
    settings.push_back({parameter.path, anew ? value_at(parameter, uniform(options.seed, parameter.path, number))
                                             : scaled(parameter, *value, 1 + change)});
  }
  return settings;
}

class Population : public Method {
 public:
  explicit Population(const SweepOptions& options)
      : members_(options.population.members),
        every_(options.population.every),
        generations_((options.job_steps + every_ - 1) / every_),
        exchanged_(std::max<std::size_t>(1, static_cast<std::size_t>(options.population.fraction * members_ + 1e-9))) {}

  Decision ask(const Study& study) const override {
    std::vector<Member> members;
    for (int trial = 0; trial < members_; ++trial) members.push_back({trial, {}});
    int trials = members_;  // begun up to this generation
    for (std::int64_t generation = 0;; ++generation) {
      const std::int64_t from = generation * every_, until = generation + 1 == generations_ ? 0 : from + every_;
      if (const auto decision = within(study, members, from, until)) return *decision;
      if (until == 0 || !select(study, members, until, trials)) return Stop{};
    }
  }

 private:
  /// What is to do before this generation is over.
  [[nodiscard]] static std::optional<Decision> within(const Study& study, const std::vector<Member>& members,
                                                      std::int64_t from, std::int64_t until) {
    const auto& trials = study.trials();
    const SweepOptions& options = study.options();
    for (const auto& [trial, origin] : members) {
      if (trial < static_cast<int>(trials.size())) continue;
      if (!origin) return Begin{random_settings(options, trial), until};
      const Trial& copied = trials.at(origin->trial);
      return Begin{explored(options, copied.settings, trial), until, origin};
    }
    bool runs = false;
    for (const auto& member : members) {
      const Trial& trial = trials.at(member.trial);
      if (trial.state == TrialState::paused && trial.until == from) return Promote{trial.number, until};
      runs = runs || trial.state == TrialState::waiting;
    }
    return runs ? std::optional<Decision>(Wait{}) : std::nullopt;
  }

  /// Puts copies of the best members in the places of those that have failed, and of the worst. False if all have
  /// failed.
  bool select(const Study& study, std::vector<Member>& members, std::int64_t steps, int& trials) const {
    std::vector<std::size_t> ranked, replaced;  // places, the best first
    std::vector<double> values(members.size());
    for (std::size_t place = 0; place < members.size(); ++place) {
      const Report* report = report_at(study.trials().at(members[place].trial), steps);
      (report == nullptr ? replaced : ranked).push_back(place);
      if (report != nullptr) values[place] = report->value;
    }
    if (ranked.empty()) return false;
    std::stable_sort(ranked.begin(), ranked.end(),
                     [&](std::size_t a, std::size_t b) { return study.is_better(values[a], values[b]); });
    while (replaced.size() < exchanged_ && ranked.size() > 1) {
      replaced.push_back(ranked.back());
      ranked.pop_back();
    }
    std::sort(replaced.begin(), replaced.end());
    ranked.resize(std::min(ranked.size(), exchanged_));
    std::vector<int> best;
    for (const std::size_t place : ranked) best.push_back(members[place].trial);
    for (const std::size_t place : replaced) {
      const double where = uniform(study.options().seed, "", trials, donor);
      const std::size_t chosen = where * best.size();
      members[place] = {trials++, Origin{best[std::min(chosen, best.size() - 1)], steps}};
    }
    return true;
  }

  int members_;
  std::int64_t every_, generations_;
  std::size_t exchanged_;  ///< members that are replaced, and members that are copied
};

}  // namespace

std::unique_ptr<Method> make_population(const SweepOptions& options) {
  return std::make_unique<Population>(options);
}

}  // namespace lockstep::sweep
