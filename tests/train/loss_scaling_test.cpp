// precision: fp16: how the loss scale develops, and that it develops equally, with one hash, on any number of ranks,
// with threads, and after a stop at any step.
#include "step/optim/loss_scaling.hpp"

#include <gtest/gtest.h>

#include <mutex>

#include "lockstep/error.hpp"
#include "train/small_run.hpp"

namespace lockstep::train {

namespace {

// Convolutions, batch norm and AdamW, whose bias correction counts updates. Gradients overflow at the first scales.
constexpr const char* kHalfJob = R"(
job:
  name: half
  model:
    layers:
      - {conv: {filters: 8, kernel: 3, bias: false}}
      - batch_norm
      - relu
      - {max_pool: {kernel: 2}}
      - flatten
      - {linear: {features: 10}}
  data: {train: {digits: {count: 160}}}
  batch_size: 16
  micro_batches: 8
  steps: 14
  precision: {fp16: {initial_scale: 16777216, growth_interval: 3}}
  optimizer: {adamw: {weight_decay: 0.01}}
  learning_rate: 0.01
  clip_norm: 0.5
  checkpoint: never
)";

/// For each step its scale, and whether its update was skipped.
using Course = std::vector<std::pair<double, bool>>;

struct ScaledOutcome {
  std::string parameters;
  Course course;
  bool operator==(const ScaledOutcome&) const = default;
};

ScaledOutcome train_scaled(int ranks, const std::vector<std::string>& overrides = {}, TrainerOptions options = {}) {
  const Registries registries = Registries::built_in();
  const JobFile job = config::load_text(kHalfJob, "job.yaml", overrides, catalogue_of(registries), false);
  std::mutex mutex;
  std::vector<std::string> hashes;
  Events events;
  run_in_threads(ranks, [&](Communicator& communicator) {
    TrainerOptions mine = options;
    if (communicator.rank() == 0) mine.sink = &events;
    const TrainResult result = train_job(job, communicator, registries, mine);
    const std::lock_guard lock(mutex);
    hashes.push_back(result.parameters_sha256);
  });
  ScaledOutcome outcome{hashes.front(), {}};
  for (const std::string& hash : hashes) EXPECT_EQ(hash, hashes.front()) << "ranks disagree";
  for (const auto& step : events.of<events::Step>()) {
    outcome.course.emplace_back(step.loss_scale.value_or(0), step.skipped.value_or(false));
  }
  return outcome;
}

/// The first step, from 0, whose update was not skipped.
std::int64_t first_good(const Course& course) {
  std::int64_t step = 0;
  while (course.at(static_cast<std::size_t>(step)).second) ++step;
  return step;
}

std::string message_of(const std::vector<std::string>& overrides) {
  try {
    (void)train_scaled(1, overrides);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::diverged);
    return error.what();
  }
  return "";
}

optim::LossScale after(const LossScaleOptions& options, optim::LossScale scale, const std::vector<bool>& skipped) {
  for (const bool one : skipped) optim::after_update(options, one, 7, scale);
  return scale;
}

}  // namespace

TEST(LossScaling, DoublesAfterAnIntervalOfGoodUpdatesAndHalvesAfterABadOne) {
  const LossScaleOptions options{.growth_interval = 3};
  const optim::LossScale start{.scale = 1024};
  EXPECT_EQ(after(options, start, {false, false}).scale, 1024);
  EXPECT_EQ(after(options, start, {false, false}).good_updates, 2);
  EXPECT_EQ(after(options, start, {false, false, false}).scale, 2048);
  EXPECT_EQ(after(options, start, {false, false, false}).good_updates, 0);
  const optim::LossScale interrupted = after(options, start, {false, false, true, false, false});
  EXPECT_EQ(interrupted.scale, 512);
  EXPECT_EQ(interrupted.good_updates, 2) << "in a row";
  EXPECT_EQ(interrupted.skipped, 1);
}

TEST(LossScaling, StaysWithinItsLimits) {
  const LossScaleOptions options{.growth_interval = 1};
  EXPECT_EQ(after(options, {.scale = optim::kLargestLossScale}, {false, false}).scale, optim::kLargestLossScale);
  const optim::LossScale least = after(options, {.scale = 2 * optim::kSmallestLossScale}, {true});
  EXPECT_EQ(least.scale, optim::kSmallestLossScale);
  try {
    (void)after(options, least, {true});
    FAIL() << "there is no smaller scale";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::diverged);
    EXPECT_STREQ(error.what(),
                 "step 8: some gradient is not a finite number at a loss scale of 6.103515625e-05, the smallest there "
                 "is; try a smaller learning rate, clip_norm, or precision: bf16");
  }
}

TEST(LossScaling, AFixedScaleStays) {
  const LossScaleOptions options{.fixed = 256, .growth_interval = 1};
  EXPECT_EQ(after(options, {.scale = 256}, {false, false, false}).scale, 256);
  EXPECT_THROW((void)after(options, {.scale = 256}, {true}), Error);
}

TEST(LossScaling, RanksThreadsAndLoweringChangeNoBit) {
  const ScaledOutcome alone = train_scaled(1, {"threads=1"});
  // The test is meaningful only if everything occurs: skipped updates, others, and doubling in between.
  ASSERT_EQ(alone.course.size(), 14U);
  EXPECT_EQ(alone.course.front(), (std::pair{16777216.0, true}));
  EXPECT_FALSE(alone.course.back().second && alone.course[12].second);
  bool doubled = false;
  for (std::size_t i = 1; i < alone.course.size(); ++i) {
    doubled = doubled || alone.course[i].first == 2 * alone.course[i - 1].first;
  }
  EXPECT_TRUE(doubled);
  EXPECT_NE(alone.parameters, train_scaled(1, {"precision=bf16"}).parameters);
  EXPECT_NE(alone.parameters, train_scaled(1, {"precision=fp32"}).parameters);
  for (const bool lowered : {true, false}) {
    for (const int ranks : {1, 2, 3}) {
      TrainerOptions options;
      options.lowered = lowered;
      EXPECT_EQ(train_scaled(ranks, {"threads=2"}, options), alone) << ranks << " ranks, lowered " << lowered;
    }
  }
}

TEST(LossScaling, GoesOnAfterAStopAtAnotherSize) {
  const ScaledOutcome unbroken = train_scaled(1);
  const std::int64_t good = first_good(unbroken.course);
  ASSERT_GT(good, 1);
  // Right after the first skipped update, after the last of these, and within a growth interval.
  for (const std::int64_t stop : {std::int64_t{1}, good, good + 2}) {
    const Folder folder;
    const std::vector<std::string> overrides = {"run_directory=" + folder.path(), "checkpoint={every: 100 steps}"};
    TrainerOptions options;
    options.stop_at = stop;
    ScaledOutcome outcome = train_scaled(3, overrides, options);
    ASSERT_EQ(outcome.course.size(), static_cast<std::size_t>(stop));
    const ScaledOutcome rest = train_scaled(2, overrides);
    outcome.course.insert(outcome.course.end(), rest.course.begin(), rest.course.end());
    outcome.parameters = rest.parameters;
    EXPECT_EQ(outcome, unbroken) << "stopped after step " << stop;
  }
}

TEST(LossScaling, ASkippedUpdateLeavesNothingBehind) {
  const std::string untouched = train_scaled(1, {"steps=1"}).parameters;
  const ScaledOutcome two = train_scaled(1, {"steps=2"});
  ASSERT_TRUE(two.course[0].second && two.course[1].second);
  EXPECT_EQ(two.parameters, untouched);
  EXPECT_NE(train_scaled(1).parameters, untouched);
}

// The scale is applied to the mean loss: with a batch of 16 targets it is not larger than with one target.
TEST(LossScaling, TheScaleIsOfTheMeanLoss) {
  EXPECT_FALSE(train_scaled(1, {"steps=1", "precision={fp16: {initial_scale: 1048576}}"}).course.front().second)
      << "as the scale of summed losses it would be skipped";
}

TEST(LossScaling, AScaleThatCannotBeHalvedEndsTheRun) {
  EXPECT_EQ(message_of({"precision={fp16: {loss_scale: 16777216}}"}),
            "step 1: some gradient is not a finite number at a loss scale of 16777216, which is fixed; try loss_scale: "
            "dynamic, a smaller learning rate, clip_norm, or precision: bf16");
  EXPECT_EQ(message_of({"precision={fp16: {loss_scale: 256}}"}), "");
}

TEST(LossScaling, OnlyFp16SpeaksOfIt) {
  const ScaledOutcome plain = train_scaled(1, {"precision=fp32"});
  EXPECT_EQ(plain.course.front(), (std::pair{0.0, false}));
}

}  // namespace lockstep::train
