// Methods without processes: which trials they ask for, given what has become of the earlier ones.
#include <gtest/gtest.h>

#include "sweep/method.hpp"
#include "sweep/sweeps.hpp"

namespace lockstep::sweep {
namespace {

/// Trials of a method that are begun one after the other; `value` is what each comes to.
template <class Value>
std::vector<Settings> search(const SweepOptions& options, Value value) {
  const auto method = make_method(options);
  Study study(options);
  while (true) {
    const Decision decision = method->ask(study);
    const auto* begin = std::get_if<Begin>(&decision);
    if (begin == nullptr) break;
    study.begin(begin->settings, begin->until);
    study.tell(static_cast<int>(study.trials().size()) - 1, {.steps = 10, .value = value(begin->settings)});
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
