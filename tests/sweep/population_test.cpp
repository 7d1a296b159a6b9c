// Population based training without processes: who copies whom, with which settings, in whatever order trials end.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "sweep/sweeps.hpp"
#include "tools/sweep/method.hpp"
#include "tools/sweep/results.hpp"

namespace lockstep::sweep {
namespace {

SweepOptions small_population() {
  SweepOptions sweep;
  sweep.name = "small";
  sweep.metric = "accuracy";
  sweep.direction = Direction::maximize;
  sweep.method = SearchMethod::population;
  sweep.population = {.members = 5, .every = 10, .fraction = 0.4, .resample = 0.25, .perturb = 0.2};
  sweep.job_steps = 35;
  sweep.parameters = {range("learning_rate", Distribution::log_uniform, 0.001, 0.1),
                      choice("learning_rate.schedule", {"\"constant\"", "\"linear\""}),
                      range("data.augment[0].crop.padding", Distribution::integers, 0, 8)};
  return sweep;
}

double rate_of(const Trial& trial) {
  return std::stod(*value_of(trial.settings, "learning_rate"));
}

/// Of the trial after some steps; NaN: it fails.
using Value = std::function<double(const Trial& trial, std::int64_t steps)>;

double by_rate(const Trial& trial, std::int64_t steps) {
  return -std::abs(std::log(rate_of(trial) / 0.02)) + static_cast<double>(steps) / 10;
}

/// With so many slots, of which the newest or the oldest trial ends first.
Study search(const SweepOptions& options, std::size_t slots, bool newest_first, const Value& value = by_rate) {
  const auto method = make_method(options);
  Study study(options);
  std::vector<int> running;
  while (true) {
    bool over = false;
    while (running.size() < slots) {
      const Decision decision = method->ask(study);
      if (const auto* begin = std::get_if<Begin>(&decision)) {
        study.begin(begin->settings, begin->until, begin->origin);
        running.push_back(static_cast<int>(study.trials().size()) - 1);
        if (begin->origin) {  // what it copies is there
          const Trial& copied = study.trials().at(static_cast<std::size_t>(begin->origin->trial));
          EXPECT_EQ(copied.state, TrialState::paused);
          EXPECT_EQ(copied.reports.back().steps, begin->origin->steps);
        }
      } else if (const auto* promote = std::get_if<Promote>(&decision)) {
        study.promote(promote->trial, promote->until);
        running.push_back(promote->trial);
      } else {
        over = std::holds_alternative<Stop>(decision);
        break;
      }
    }
    if (running.empty()) {
      EXPECT_TRUE(over);
      return study;
    }
    const auto ended = newest_first ? running.end() - 1 : running.begin();
    const Trial& trial = study.trials().at(static_cast<std::size_t>(*ended));
    const std::int64_t steps = trial.until > 0 ? trial.until : options.job_steps;
    const double found = value(trial, steps);
    if (std::isnan(found)) {
      study.fail(trial.number, {"the loss is nan", 1, true});
    } else {
      study.tell(trial.number, {.steps = steps, .value = found, .finished = trial.until == 0});
    }
    running.erase(ended);
  }
}

TEST(Population, SlotsAndTheirSpeedChangeNothing) {
  const SweepOptions options = small_population();
  const std::string one = trials_json(search(options, 1, false));
  for (const std::size_t slots : {1U, 2U, 3U, 8U}) {
    for (const bool newest_first : {false, true}) EXPECT_EQ(trials_json(search(options, slots, newest_first)), one);
  }
  SweepOptions other = options;
  other.seed = 2;
  EXPECT_NE(trials_json(search(other, 1, false)), one);
}

TEST(Population, TheWorstGoOnAsTheBest) {
  const Study study = search(small_population(), 2, false);
  ASSERT_EQ(study.trials().size(), 5u + 3 * 2);  // after 10, 20 and 30 steps, 2 of 5 are replaced
  std::map<std::int64_t, std::vector<const Trial*>> compared;
  for (const auto& trial : study.trials()) {
    for (const auto& report : trial.reports) compared[report.steps].push_back(&trial);
  }
  for (const std::int64_t steps : {10, 20, 30}) {
    auto& members = compared[steps];
    ASSERT_EQ(members.size(), 5u);
    std::sort(members.begin(), members.end(),
              [&](const Trial* a, const Trial* b) { return by_rate(*a, steps) > by_rate(*b, steps); });
    for (std::size_t rank = 3; rank < 5; ++rank) EXPECT_EQ(members[rank]->reports.back().steps, steps);  // ended there
    for (const auto& trial : study.trials()) {
      if (!trial.origin || trial.origin->steps != steps) continue;
      EXPECT_TRUE(trial.origin->trial == members[0]->number || trial.origin->trial == members[1]->number);
    }
  }
  ASSERT_EQ(compared[35].size(), 5u);
  for (const Trial* trial : compared[35]) EXPECT_EQ(trial->state, TrialState::done);
}

TEST(Population, CopiesHavePerturbedOrNewSettings) {
  SweepOptions options = small_population();
  options.population.members = 40;
  int perturbed = 0, anew = 0, other_choice = 0;
  const Study study = search(options, 4, false);
  for (const auto& trial : study.trials()) {
    if (!trial.origin) continue;
    const Trial& copied = study.trials().at(static_cast<std::size_t>(trial.origin->trial));
    const double ratio = rate_of(trial) / rate_of(copied);
    const bool at_the_edge = rate_of(trial) == 0.1 || rate_of(trial) == 0.001;
    if (std::abs(ratio - 0.8) < 1e-5 || std::abs(ratio - 1.2) < 1e-5 || at_the_edge) {
      ++perturbed;
    } else {
      EXPECT_EQ(*value_of(trial.settings, "learning_rate"),
                *value_of(random_settings(options, trial.number), "learning_rate"));
      ++anew;
    }
    if (trial.settings[1] != copied.settings[1]) ++other_choice;
  }
  EXPECT_EQ(perturbed + anew, 3 * 16);
  EXPECT_NEAR(anew, 12, 6);         // a quarter
  EXPECT_NEAR(other_choice, 6, 5);  // half of a quarter: the new choice may be the old one
  options.population.resample = 0;
  for (const Study still = search(options, 4, false); const auto& trial : still.trials()) {
    if (!trial.origin) continue;
    EXPECT_EQ(trial.settings[1], still.trials().at(static_cast<std::size_t>(trial.origin->trial)).settings[1]);
  }
}

TEST(Population, MembersThatFailAreReplaced) {
  const auto fails = [](const Trial& trial, std::int64_t steps) {
    return trial.number == 1 || (trial.number == 0 && steps == 20) ? std::nan("") : by_rate(trial, steps);
  };
  const Study study = search(small_population(), 2, true, fails);
  EXPECT_EQ(study.trials()[1].state, TrialState::failed);
  std::map<std::int64_t, int> members;
  for (const auto& trial : study.trials()) {
    for (const auto& report : trial.reports) ++members[report.steps];
  }
  EXPECT_EQ(members[10], 4);
  EXPECT_EQ(members[35], 5);
}

TEST(Population, WithoutASurvivorItEnds) {
  const Study none = search(small_population(), 2, false, [](const auto&, auto) { return std::nan(""); });
  EXPECT_EQ(none.trials().size(), 5u);
  EXPECT_EQ(none.best(), nullptr);
  const auto all_but_one = [](const Trial& trial, std::int64_t steps) {
    return trial.number > 0 && !trial.origin ? std::nan("") : by_rate(trial, steps);
  };
  const Study one = search(small_population(), 2, false, all_but_one);
  EXPECT_EQ(std::count_if(one.trials().begin(), one.trials().end(),
                          [](const Trial& trial) { return trial.state == TrialState::done; }),
            5);
}

TEST(Population, TheHistoryOfTheBestLeadsBackToStepZero) {
  const Study study = search(small_population(), 2, false);
  const Trial& best = *study.best();
  const auto legs =
      legs_of(study, best, [](const Settings& settings) { return "{\"job\": " + settings[0].value + "}"; });
  ASSERT_FALSE(legs.empty());
  EXPECT_EQ(legs.back().trial, best.number);
  EXPECT_EQ(legs.back().until, 0);
  EXPECT_FALSE(study.trials().at(static_cast<std::size_t>(legs.front().trial)).origin);
  for (std::size_t i = 1; i < legs.size(); ++i) {
    EXPECT_EQ((Origin{legs[i - 1].trial, legs[i - 1].until}),
              *study.trials().at(static_cast<std::size_t>(legs[i].trial)).origin);
  }
}

TEST(Scaled, StaysWithinTheDistribution) {
  const auto rate = range("x", Distribution::log_uniform, 0.001, 0.1);
  EXPECT_EQ(scaled(rate, "0.0123457", 1.2), "0.0148148");
  EXPECT_EQ(scaled(rate, "0.09", 1.2), "0.1");
  EXPECT_EQ(scaled(rate, "0.0011", 0.8), "0.001");
  auto count = range("x", Distribution::integers, 1, 9);
  EXPECT_EQ(scaled(count, "8", 0.8), "6");
  EXPECT_EQ(scaled(count, "1", 1.2), "2");  // 1.2 would be 1 again
  EXPECT_EQ(scaled(count, "1", 0.8), "1");
  EXPECT_EQ(scaled(count, "9", 1.2), "9");
  count.step = 4;
  EXPECT_EQ(scaled(count, "5", 0.8), "1");
  EXPECT_EQ(scaled(choice("x", {"1", "2"}), "1", 1.2), "1");
}

}  // namespace
}  // namespace lockstep::sweep
