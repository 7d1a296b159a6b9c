#include "tools/bench/goodput.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "seeds.hpp"
#include "tools/bench/checkpoint_interval.hpp"
#include "tools/bench/goodput_sweep.hpp"

namespace lockstep::bench {
namespace {

constexpr double kHour = 3600;

GoodputSetup calm_run() {
  return {.devices = 64,
          .steps = 1000,
          .step_seconds = 2,
          .checkpoints = {.every_steps = 50, .blocked_seconds = 4, .safe_seconds = 0},
          .restarts = {.detection_seconds = 10, .start_seconds = 20, .reload_seconds = 30}};
}

/// 16,384 devices for 54 days, with a failure every 2.8 hours.
GoodputSetup large_run() {
  return {.devices = 16'384,
          .steps = 466'560,
          .step_seconds = 10,
          .exposed_seconds = 0.25,
          .micro_batches_a_device = 16,
          .failures = {.device_mtbf_seconds = 45'566 * kHour, .spare_hosts = 4, .repair_seconds = 12 * kHour},
          .checkpoints = {.every_steps = 40, .blocked_seconds = 8, .safe_seconds = 120},
          .restarts = {.detection_seconds = 60, .start_seconds = 240, .reload_seconds = 60},
          .stragglers = {.share = 0.0005, .factor = 1.5, .seconds = 1800}};
}

GoodputSetup random_run(std::mt19937& random) {
  GoodputSetup setup;
  setup.devices_a_host = between(random, 1, 8);
  setup.devices = setup.devices_a_host * between(random, 1, 40);
  setup.steps = between(random, 1, 3000);
  setup.step_seconds = between(random, 1, 100) / 10.0;
  setup.exposed_seconds = between(random, 0, 5) / 10.0;
  setup.micro_batches_a_device = between(random, 0, 9);
  setup.balanced = between(random, 0, 1) == 1;
  setup.failures = {.device_mtbf_seconds = setup.devices * 100.0 * between(random, 1, 100),
                    .lost_host = one_of<LostHost>(random, {LostHost::replaced, LostHost::awaited, LostHost::left_out}),
                    .spare_hosts = between(random, 0, 2),
                    .repair_seconds = 10.0 * between(random, 1, 100)};
  setup.checkpoints = {.every_steps = between(random, 1, 100),
                       .blocked_seconds = between(random, 0, 20) / 2.0,
                       .safe_seconds = between(random, 0, 200) / 2.0};
  setup.restarts = {.detection_seconds = 5.0 * between(random, 0, 9), .start_seconds = 20, .reload_seconds = 3};
  setup.stragglers = {.share = between(random, 0, 10) / 100.0, .factor = 1.5, .seconds = 200};
  setup.seed = random();
  return setup;
}

TEST(Goodput, WithoutFailuresIsOneMinusTheShareOfCheckpoints) {
  const GoodputRun run = simulate_goodput(calm_run());
  EXPECT_TRUE(run.finished);
  EXPECT_EQ(run.checkpoints, 20);
  EXPECT_EQ(run.wall_seconds, 1000 * 2 + 20 * 4);
  EXPECT_EQ(run.times.checkpoints, 20 * 4);
  EXPECT_EQ(run.goodput(), 1 - 80.0 / 2080);
}

TEST(Goodput, TheLastStepsHaveACheckpoint) {
  GoodputSetup setup = calm_run();
  setup.steps = 101;
  setup.checkpoints.safe_seconds = 16;
  const GoodputRun run = simulate_goodput(setup);
  EXPECT_EQ(run.checkpoints, 3);
  // The third checkpoint comes 2 s after the second was copied, waits until that one is safe, and is then waited for
  // itself.
  EXPECT_EQ(run.times.checkpoints, 4 + 4 + 14 + 4 + 16);
  EXPECT_EQ(run.wall_seconds, 202 + 42);
}

TEST(Goodput, ExposedReductionIsTimeOfTheSteps) {
  GoodputSetup setup = calm_run();
  setup.exposed_seconds = 0.5;
  const GoodputRun run = simulate_goodput(setup);
  EXPECT_DOUBLE_EQ(run.times.reduction, 500);
  EXPECT_DOUBLE_EQ(run.times.steps, 2000);
  EXPECT_DOUBLE_EQ(run.wall_seconds, 2580);
}

TEST(Goodput, OneFailure) {
  // A seed's first failure, determined by a run in which it is the only one.
  GoodputSetup setup = calm_run();
  setup.failures.device_mtbf_seconds = 64 * 1500;
  for (setup.seed = 1; simulate_goodput(setup).failures != 1; ++setup.seed) ASSERT_LT(setup.seed, 100U);
  const GoodputRun run = simulate_goodput(setup);
  EXPECT_EQ(run.times.restarts, 60);
  EXPECT_NEAR(run.times.steps, 2000, 1e-9);
  EXPECT_LE(run.times.lost_work, 100) << "no more than between two checkpoints";
  EXPECT_NEAR(run.wall_seconds, 2000 + run.times.checkpoints + run.times.lost_work + 60, 1e-9);
}

TEST(Goodput, WhatIsNotYetSafeIsLost) {
  GoodputSetup setup = calm_run();
  setup.failures.device_mtbf_seconds = 64 * 900;
  double soon = 0, late = 0;
  for (setup.seed = 1; setup.seed <= 200; ++setup.seed) {
    setup.checkpoints.safe_seconds = 0;
    soon += simulate_goodput(setup).times.lost_work;
    setup.checkpoints.safe_seconds = 40;
    late += simulate_goodput(setup).times.lost_work;
  }
  EXPECT_GT(late, 1.3 * soon);
}

TEST(Goodput, EachSecondIsInOnePart) {
  for (const unsigned seed : seeds(300)) {
    SCOPED_TRACE(rerun(seed, "plan_test"));
    std::mt19937 random(seed);
    const GoodputSetup setup = random_run(random);
    const GoodputRun run = simulate_goodput(setup);
    EXPECT_NEAR(run.times.wall() / run.wall_seconds, 1, 1e-9);
    if (run.finished) {
      EXPECT_EQ(run.steps_done, static_cast<double>(setup.steps));
      const std::int64_t every = setup.checkpoints.every_steps;
      EXPECT_EQ(run.checkpoints, (setup.steps + every - 1) / every) << "each is safe once";
      EXPECT_NEAR(run.times.steps / (static_cast<double>(setup.steps) * setup.step_seconds), 1, 1e-9);
      EXPECT_NEAR(run.times.reduction, static_cast<double>(setup.steps) * setup.exposed_seconds,
                  1e-9 * run.wall_seconds);
    }
    if (setup.failures.lost_host != LostHost::awaited && setup.devices > setup.devices_a_host * 3) {
      EXPECT_EQ(run.times.awaiting_hosts, 0) << "there is always a host left";
    }
    if (setup.failures.lost_host != LostHost::left_out) {
      EXPECT_EQ(run.times.missing_hosts, 0);
    }
    EXPECT_GE(run.times.stragglers, 0);
    EXPECT_GE(run.times.lost_work, 0);
  }
}

TEST(Goodput, IsAFunctionOfTheSeed) {
  GoodputSetup setup = large_run();
  setup.failures.lost_host = LostHost::left_out;
  setup.steps /= 10;
  const GoodputRun a = simulate_goodput(setup), again = simulate_goodput(setup);
  EXPECT_EQ(a.wall_seconds, again.wall_seconds);
  EXPECT_EQ(a.failures, again.failures);
  EXPECT_EQ(a.events, again.events);
  EXPECT_EQ(a.times.stragglers, again.times.stragglers);
  ++setup.seed;
  EXPECT_NE(simulate_goodput(setup).wall_seconds, a.wall_seconds);
}

// Daly's expectation has the same assumptions as the simulation: within 1 %, where the mean of 400 runs has a standard
// error of about 0.2 %. From a failure every 40 intervals to one every 2.
TEST(Goodput, TakesTheTimeThatDalyExpects) {
  GoodputSetup setup = calm_run();
  setup.steps = 5000;
  for (const double mtbf : {4000.0, 1000.0, 200.0}) {
    setup.failures.device_mtbf_seconds = 64 * mtbf;
    const GoodputSummary summary = simulate_seeds(setup, 400);
    const double expected = expected_run_seconds(10'000, 100, 4, 60, mtbf);
    EXPECT_NEAR(summary.wall_seconds.mean / expected, 1, 0.01) << mtbf;
  }
}

TEST(Goodput, IsBestNearYoungAndDaly) {
  GoodputSetup setup = calm_run();
  setup.steps = 50'000;
  setup.failures.device_mtbf_seconds = 64 * 3600;
  const double mtbf = 3600, optimum = young_daly_interval(4, mtbf);
  EXPECT_NEAR(optimum, 169.7, 0.1);
  std::vector<std::int64_t> intervals;
  for (std::int64_t every = 10; every < 1000; every = every * 5 / 4) intervals.push_back(every);
  const auto summaries = simulate_intervals(setup, intervals, 60);
  const GoodputSummary& best = summaries[best_of(summaries)];
  // The grid is as coarse as a quarter; the next but one would show.
  EXPECT_GT(static_cast<double>(best.every_steps) * 2, optimum / 1.4);
  EXPECT_LT(static_cast<double>(best.every_steps) * 2, optimum * 1.4);
  EXPECT_GT(best.goodput.mean, summaries.front().goodput.mean + 0.05);
  EXPECT_GT(best.goodput.mean, summaries.back().goodput.mean + 0.05);
}

TEST(Goodput, YoungAndDalyAgainstTheExactOptimum) {
  EXPECT_EQ(young_daly_interval(8, 3600), 240);
  EXPECT_EQ(young_daly_interval(8, 0), std::numeric_limits<double>::infinity());
  EXPECT_NEAR(best_interval(8, 3600), 240, 240 * 0.03);
  for (const double mtbf : {100.0, 10'000.0}) {
    const double best = best_interval(5, mtbf), least = expected_run_seconds(1, best, 5, 30, mtbf);
    EXPECT_LT(least, expected_run_seconds(1, best * 1.01, 5, 30, mtbf));
    EXPECT_LT(least, expected_run_seconds(1, best / 1.01, 5, 30, mtbf));
  }
}

// Work per event, not per step or second: 466,560 steps of 16,384 devices take fewer events than there are steps.
TEST(Goodput, LargeRunsTakeFewEvents) {
  GoodputSetup setup = large_run();
  for (const LostHost lost_host : {LostHost::replaced, LostHost::awaited, LostHost::left_out}) {
    setup.failures.lost_host = lost_host;
    const GoodputRun run = simulate_goodput(setup);
    EXPECT_TRUE(run.finished);
    EXPECT_GT(run.failures, 400);
    // Three for each checkpoint: its step, its copy, its safety. Three for each failure: itself, the restart, the
    // repair. Two for each slow device: its beginning and its end.
    const double slow = 16'384 * 0.0005 * run.wall_seconds / 1800;
    const double repeated = run.times.lost_work / (40 * 10.25);
    EXPECT_LT(static_cast<double>(run.events),
              1.1 * (3 * (466'560.0 / 40 + repeated) + 3 * static_cast<double>(run.failures) + 2 * slow));
    EXPECT_LT(run.events, 150'000);
  }
}

TEST(Goodput, GivesUpWhatDoesNotEnd) {
  GoodputSetup setup = calm_run();
  setup.failures.device_mtbf_seconds = 64 * 10;  // and a restart takes 60 s
  const GoodputRun run = simulate_goodput(setup);
  EXPECT_FALSE(run.finished);
  EXPECT_EQ(run.wall_seconds, kPatience * 2000);
  EXPECT_NEAR(run.times.wall() / run.wall_seconds, 1, 1e-9);
  EXPECT_LT(run.goodput(), 0.001);
}

// If steps take `times` as long for a share of the time: how much this adds to the useful time, as a fraction of it.
double added(double share_of_time, double times) {
  const double lost = share_of_time * (1 - 1 / times);
  return lost / (1 - lost);
}

// One device in 50 is slow: at least one among 64 for 1 - 0.98^64 = 73 % of the time.
GoodputSetup with_slow_devices() {
  GoodputSetup setup = calm_run();
  setup.steps = 500'000;
  setup.stragglers = {.share = 0.02, .factor = 2, .seconds = 600};
  return setup;
}

TEST(Goodput, SlowDevicesCostLessWhereMicroBatchesMove) {
  GoodputSetup setup = with_slow_devices();
  setup.balanced = false;
  const GoodputTimes waiting = simulate_goodput(setup).times;
  setup.balanced = true;
  const GoodputTimes balanced = simulate_goodput(setup).times;
  EXPECT_NEAR(waiting.stragglers / waiting.steps, added(1 - std::pow(0.98, 64), 2), 0.02) << "each step takes twice";
  EXPECT_NEAR(balanced.stragglers / balanced.steps, 0.01, 0.0005) << "half of one device in 50 is missing";
}

TEST(Goodput, AsManyDevicesAreSlowAsWasAskedFor) {
  GoodputSetup setup = with_slow_devices();
  setup.stragglers.share = 0.5;
  const GoodputTimes times = simulate_goodput(setup).times;
  EXPECT_NEAR(times.stragglers / times.steps, 1 / 0.75 - 1, 0.01) << "half of the devices compute half";
}

TEST(Goodput, WithFewMicroBatchesASlowDeviceCostsAWholeOne) {
  GoodputSetup setup = with_slow_devices();
  setup.micro_batches_a_device = 4;
  const GoodputTimes times = simulate_goodput(setup).times;
  EXPECT_NEAR(times.stragglers / times.steps, added(1 - std::pow(0.98, 64), 1.25), 0.01) << "some device computes five";
}

TEST(Goodput, ALostHostIsAwaited) {
  GoodputSetup setup = calm_run();
  setup.failures = {.device_mtbf_seconds = 64 * 1500, .lost_host = LostHost::awaited, .repair_seconds = 500};
  for (setup.seed = 1; simulate_goodput(setup).failures != 1; ++setup.seed) ASSERT_LT(setup.seed, 100U);
  EXPECT_NEAR(simulate_goodput(setup).times.awaiting_hosts, 500, 1e-9);
  setup.failures.spare_hosts = 1;
  EXPECT_EQ(simulate_goodput(setup).times.awaiting_hosts, 0);
}

TEST(Goodput, AHostThatIsLeftOutJoinsAtACheckpoint) {
  GoodputSetup setup = calm_run();
  setup.failures = {.device_mtbf_seconds = 64 * 1500, .lost_host = LostHost::left_out, .repair_seconds = 500};
  const auto once_early = [&] {
    const GoodputRun run = simulate_goodput(setup);
    return run.failures == 1 && run.times.restarts == 60 + 50;
  };
  for (setup.seed = 1; !once_early(); ++setup.seed) ASSERT_LT(setup.seed, 100U);
  const GoodputRun run = simulate_goodput(setup);
  EXPECT_EQ(run.times.stragglers, 0);
  // Seven hosts of eight, from the restart until the first checkpoint after the repair: a seventh of these steps.
  EXPECT_GT(run.times.missing_hosts, 200.0 / 7);
  EXPECT_LT(run.times.missing_hosts, 700.0 / 7);
  EXPECT_EQ(run.times.awaiting_hosts, 0);
}

TEST(Goodput, TheLastHostIsAwaited) {
  GoodputSetup setup = calm_run();
  setup.devices = 8;
  setup.failures = {.device_mtbf_seconds = 8 * 1500, .lost_host = LostHost::left_out, .repair_seconds = 500};
  for (setup.seed = 1; simulate_goodput(setup).failures != 1; ++setup.seed) ASSERT_LT(setup.seed, 100U);
  EXPECT_NEAR(simulate_goodput(setup).times.awaiting_hosts, 500, 1e-9);
}

TEST(Goodput, SpreadOfValues) {
  const Spread spread = spread_of(std::vector<double>{1, 2, 3, 6});
  EXPECT_EQ(spread.mean, 3);
  EXPECT_DOUBLE_EQ(spread.std, std::sqrt(14.0 / 3));
  EXPECT_EQ(spread.min, 1);
  EXPECT_EQ(spread.max, 6);
  EXPECT_EQ(spread_of(std::vector<double>{5}).std, 0);
}

TEST(Goodput, SeedsAreThoseFromTheFirstOn) {
  GoodputSetup setup = large_run();
  setup.steps /= 100;
  const GoodputSummary summary = simulate_seeds(setup, 3);
  double sum = 0;
  for (int i = 0; i < 3; ++i, ++setup.seed) sum += simulate_goodput(setup).goodput();
  EXPECT_DOUBLE_EQ(summary.goodput.mean, sum / 3);
  EXPECT_NEAR(summary.mean_times.wall(), summary.wall_seconds.mean, 1e-6);
}

}  // namespace
}  // namespace lockstep::bench
