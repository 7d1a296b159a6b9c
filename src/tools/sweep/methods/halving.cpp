// Asynchronous successive halving: many trials are trained for a few steps, the best 1 / reduction of them further, and
// so on, up to the job's end. A slot never waits while a trial may be promoted or begun.
// Source: Li et al., "A system for massively parallel hyperparameter tuning" (ASHA), MLSys 2020, algorithm 2.
//
// Rung k is after min_steps * reduction^k steps; the last one is the job's end. A promoted trial goes on from its
// checkpoint, and its learning rate follows the schedule of the whole job from its first step, so a trial that gets to
// the end has the bits of one that was never paused. A trial that fails counts at the rungs that it
// came to and at no other.
#include <algorithm>

#include "tools/sweep/method.hpp"

namespace lockstep::sweep {

namespace {

/// Steps of each rung; 0: the job's end.
std::vector<std::int64_t> rungs_of(const SweepOptions& options) {
  std::vector<std::int64_t> rungs;
  std::int64_t steps = options.halving.min_steps;
  while (steps < options.job_steps) {
    rungs.push_back(steps);
    if (steps > options.job_steps / options.halving.reduction) break;  // the product may not fit in 64 bits
    steps *= options.halving.reduction;
  }
  rungs.push_back(0);
  return rungs;
}

class Halving : public Method {
 public:
  explicit Halving(const SweepOptions& options) : rungs_(rungs_of(options)), reduction_(options.halving.reduction) {}

  Decision ask(const Study& study) const override {
    for (std::size_t rung = rungs_.size() - 1; rung-- > 0;) {
      if (const auto trial = promotable(study, rung)) return Promote{*trial, rungs_[rung + 1]};
    }
    if (study.may_begin()) {
      return Begin{random_settings(study.options(), study.trials().size()), rungs_.front()};
    }
    const auto& trials = study.trials();
    const bool runs = std::any_of(trials.begin(), trials.end(),
                                  [](const Trial& trial) { return trial.state == TrialState::waiting; });
    if (runs) return Wait{};
    return Stop{};
  }

 private:
  /// The best trial that is paused at this rung and among the best 1 / reduction of all that have come to it.
  std::optional<int> promotable(const Study& study, std::size_t rung) const {
    std::vector<const Trial*> reached;
    for (const auto& trial : study.trials()) {
      if (trial.reports.size() > rung) reached.push_back(&trial);
    }
    std::stable_sort(reached.begin(), reached.end(), [&](const Trial* a, const Trial* b) {
      return study.is_better(a->reports[rung].value, b->reports[rung].value);
    });
    reached.resize(reached.size() / reduction_);
    for (const Trial* trial : reached) {
      if (trial->state == TrialState::paused && trial->reports.size() == rung + 1) return trial->number;
    }
    return std::nullopt;
  }

  std::vector<std::int64_t> rungs_;
  std::int64_t reduction_;
};

}  // namespace

std::unique_ptr<Method> make_halving(const SweepOptions& options) {
  return std::make_unique<Halving>(options);
}

}  // namespace lockstep::sweep
