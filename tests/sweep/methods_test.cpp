// Methods without processes: which trials they ask for, given what has become of the earlier ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>

#include "sweep/sweeps.hpp"
#include "tools/sweep/method.hpp"

namespace lockstep::sweep {
namespace {

/// Trials of a method that are begun one after the other; `value` is what each comes to, NaN where it fails.
template <class Value>
std::vector<Settings> search(const SweepOptions& options, Value value) {
  const auto method = make_method(options);
  Study study(options);
  while (true) {
    const Decision decision = method->ask(study);
    const auto* begin = std::get_if<Begin>(&decision);
    if (begin == nullptr) break;
    study.begin(begin->settings, begin->until);
    const int trial = static_cast<int>(study.trials().size()) - 1;
    const double found = value(begin->settings);
    if (std::isnan(found)) {
      study.fail(trial, {"the loss is nan", 1, true});
    } else {
      study.tell(trial, {.steps = 10, .value = found});
    }
  }
  std::vector<Settings> found;
  for (const auto& trial : study.trials()) found.push_back(trial.settings);
  return found;
}

TEST(Random, TheSeedDecides) {
  SweepOptions sweep = small_sweep();
  const auto zero = [](const auto&) { return 0.0; };
  const auto first = search(sweep, zero);
  EXPECT_EQ(first.size(), 6u);
  EXPECT_EQ(search(sweep, [](const Settings& s) { return static_cast<double>(s.size()); }), first);
  sweep.seed = 2;
  EXPECT_NE(search(sweep, zero), first);
}

TEST(Random, ALargerBudgetKeepsTheFirstTrials) {
  SweepOptions sweep = small_sweep();
  const auto zero = [](const auto&) { return 0.0; };
  const auto six = search(sweep, zero);
  sweep.budget.trials = 9;
  auto nine = search(sweep, zero);
  ASSERT_EQ(nine.size(), 9u);
  nine.resize(6);
  EXPECT_EQ(nine, six);
}

TEST(Random, ABudgetOfStepsEndsTheSearch) {
  SweepOptions sweep = small_sweep();
  sweep.budget = {.trials = 0, .steps = 25, .device_seconds = 0};
  EXPECT_EQ(search(sweep, [](const auto&) { return 0.0; }).size(), 3u);  // of 10 steps
}

/// A halving with one slot, of trials that are as good as their learning rate at any step.
Study halve(const SweepOptions& options) {
  const auto method = make_method(options);
  Study study(options);
  const auto train = [&](int number, std::int64_t until) {
    const auto& settings = study.trials().at(static_cast<std::size_t>(number)).settings;
    const double rate = std::stod(*value_of(settings, "learning_rate"));
    study.tell(number, {.steps = until > 0 ? until : options.job_steps, .value = rate, .finished = until == 0});
  };
  while (true) {
    const Decision decision = method->ask(study);
    if (const auto* begin = std::get_if<Begin>(&decision)) {
      study.begin(begin->settings, begin->until);
      train(static_cast<int>(study.trials().size()) - 1, begin->until);
    } else if (const auto* promote = std::get_if<Promote>(&decision)) {
      study.promote(promote->trial, promote->until);
      train(promote->trial, promote->until);
    } else {
      EXPECT_TRUE(std::holds_alternative<Stop>(decision));
      return study;
    }
  }
}

SweepOptions small_halving(std::int64_t trials) {
  SweepOptions sweep = small_sweep();
  sweep.method = SearchMethod::halving;
  sweep.halving.min_steps = 10;
  sweep.job_steps = 80;
  sweep.budget.trials = trials;
  return sweep;
}

TEST(Halving, TheBestThirdOfEachRungIsTrainedFurther) {
  const Study study = halve(small_halving(27));
  std::map<std::size_t, int> reached;
  for (const auto& trial : study.trials()) {
    for (std::size_t rung = 0; rung < trial.reports.size(); ++rung) ++reached[rung];
  }
  EXPECT_EQ(reached[0], 27);
  EXPECT_GE(reached[1], 9);  // more than a third: some were among the best when they were promoted
  EXPECT_LT(reached[1], 18);
  const Trial& best = *study.best();
  ASSERT_EQ(best.reports.size(), 3u);
  EXPECT_EQ(best.reports[1].steps, 30);
  EXPECT_EQ(best.reports[2].steps, 80);
  for (const auto& trial : study.trials()) EXPECT_LE(trial.reports.back().value, best.reports.back().value);
}

TEST(Halving, WaitsForTrialsThatMayBePromoted) {
  const SweepOptions sweep = small_halving(1);
  Study study(sweep);
  study.begin({}, 10);
  EXPECT_TRUE(std::holds_alternative<Wait>(make_method(sweep)->ask(study)));
  study.fail(0, {"killed", 1, true});
  EXPECT_TRUE(std::holds_alternative<Stop>(make_method(sweep)->ask(study)));
}

TEST(Halving, AReductionBeyondTheJobsLengthPromotesNone) {
  SweepOptions sweep = small_halving(2);
  sweep.halving.reduction = std::numeric_limits<std::int64_t>::max();  // times min_steps it does not fit in 64 bits
  const Study study = halve(sweep);
  for (const auto& trial : study.trials()) EXPECT_EQ(trial.steps, 10);
}

TEST(Tpe, ComesCloserThanRandomSearch) {
  SweepOptions sweep = small_sweep();
  sweep.direction = Direction::minimize;
  sweep.budget.trials = 60;
  const auto distance = [](const Settings& settings) {
    const double rate = std::log10(std::stod(*value_of(settings, "learning_rate")) / 0.02);
    return rate * rate + (*value_of(settings, "optimizer") == "\"adam\"" ? 0 : 0.3);
  };
  const auto mean_of_last = [&](const std::vector<Settings>& trials) {
    double sum = 0;
    for (std::size_t i = trials.size() - 20; i < trials.size(); ++i) sum += distance(trials[i]) / 20;
    return sum;
  };
  double of_random = 0, of_tpe = 0;
  for (sweep.seed = 1; sweep.seed <= 5; ++sweep.seed) {
    sweep.method = SearchMethod::random;
    const auto random = search(sweep, distance);
    sweep.method = SearchMethod::tpe;
    const auto tpe = search(sweep, distance);
    EXPECT_TRUE(std::equal(tpe.begin(), tpe.begin() + 10, random.begin()));
    EXPECT_EQ(search(sweep, distance), tpe);
    of_random += mean_of_last(random);
    of_tpe += mean_of_last(tpe);
  }
  EXPECT_LT(of_tpe, 0.5 * of_random);
}

TEST(Tpe, AvoidsSettingsThatFail) {
  SweepOptions sweep = small_sweep();
  sweep.budget.trials = 60;
  const auto rate = [](const Settings& settings) { return std::stod(*value_of(settings, "learning_rate")); };
  const auto diverges = [&](const Settings& settings) { return rate(settings) > 0.01; };
  const auto value = [&](const Settings& settings) {  // best at 0.005
    return diverges(settings) ? std::nan("") : -std::abs(std::log(rate(settings) / 0.005));
  };
  const auto failed = [&](const std::vector<Settings>& trials) {
    return std::count_if(trials.begin() + 20, trials.end(), diverges);
  };
  const auto random = failed(search(sweep, value));
  sweep.method = SearchMethod::tpe;
  EXPECT_LT(failed(search(sweep, value)), random);
}

TEST(Grid, EndsByItself) {
  SweepOptions sweep = small_sweep();
  sweep.method = SearchMethod::grid;
  sweep.budget.trials = 0;
  EXPECT_EQ(search(sweep, [](const auto&) { return 0.0; }), grid(sweep.parameters));
}

TEST(Study, TheBestIsOfThoseThatAreDone) {
  Study study(small_sweep());
  for (int i = 0; i < 4; ++i) study.begin({}, 0);
  EXPECT_EQ(study.best(), nullptr);
  study.tell(0, {.steps = 5, .value = 0.99, .finished = false});
  EXPECT_EQ(study.best()->number, 0);
  study.tell(1, {.steps = 10, .value = 0.7});
  study.tell(3, {.steps = 10, .value = 0.7});
  study.fail(2, {"killed", 1, true});
  EXPECT_EQ(study.best()->number, 1);
  EXPECT_EQ(study.trials()[2].state, TrialState::failed);
}

}  // namespace
}  // namespace lockstep::sweep
