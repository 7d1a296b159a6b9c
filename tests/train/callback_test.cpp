// Callbacks: what they see and when, and that all ranks do what the first rank's callbacks request, also after a
// resume.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "lockstep/error.hpp"
#include "train/small_run.hpp"

namespace lockstep {

namespace {

using Handler = std::function<void(TrainingState&)>;

class AfterStep final : public Callback {
 public:
  explicit AfterStep(Handler handler) : handler_(std::move(handler)) {}
  void after_step(TrainingState& state) override { handler_(state); }

 private:
  Handler handler_;
};

/// Records what it is shown.
class Diary final : public Callback {
 public:
  void after_step(TrainingState& state) override { note("step", state); }
  void after_evaluation(TrainingState& state) override { note("evaluation", state); }
  void after_epoch(TrainingState& state) override { note("epoch", state); }
  std::vector<std::string> lines;

 private:
  void note(const char* moment, const TrainingState& state) {
    EXPECT_TRUE(std::isfinite(state.loss));
    EXPECT_EQ(state.metrics.count("accuracy"), 1u);
    EXPECT_EQ(state.learning_rate, 0.01);
    lines.push_back(fmt::format("{} {} of {}, epoch {}, evaluated {}", moment, state.step, state.steps, state.epoch,
                                state.evaluated.size()));
  }
};

/// On ranks that are threads, each with its own callback; returns the hash of all.
std::string hash_on(int ranks, const std::function<Handler(int rank)>& handler_of, const std::string& directory = "",
                    std::int64_t stop_at = 0) {
  const Registries registries = Registries::built_in();
  std::vector<std::string> hashes(static_cast<std::size_t>(ranks));
  std::vector<std::string> overrides = {"evaluate=never"};
  overrides.push_back(directory.empty() ? "checkpoint=never" : "run_directory=" + directory);
  const JobFile job = config::load_text(kJob, "job.yaml", overrides, train::catalogue_of(registries), false);
  run_in_threads(ranks, [&](Communicator& communicator) {
    AfterStep callback(handler_of(communicator.rank()));
    TrainerOptions options;
    options.callbacks = {&callback};
    options.stop_at = stop_at;
    hashes[static_cast<std::size_t>(communicator.rank())] =
        train_job(job, communicator, registries, options).parameters_sha256;
  });
  for (const auto& hash : hashes) EXPECT_EQ(hash, hashes.front()) << "ranks disagree";
  return hashes.front();
}

/// Halves the rate after every third step.
void decay(TrainingState& state) {
  if (state.step % 3 == 0) state.set_learning_rate_factor(0.5 * state.learning_rate_factor());
}

}  // namespace

TEST(Callback, SeesStepsEvaluationsAndEpochsInOrder) {
  const Folder folder;
  Events events;
  Diary diary;
  TrainerOptions options;
  options.callbacks = {&diary};
  (void)run(folder.path(), {"steps=5", "evaluate.every=2 steps", "batch_size=32", "micro_batches=4"}, events, options);
  EXPECT_EQ(diary.lines,
            (std::vector<std::string>{"step 1 of 5, epoch 1, evaluated 0", "step 2 of 5, epoch 1, evaluated 0",
                                      "evaluation 2 of 5, epoch 1, evaluated 2", "epoch 2 of 5, epoch 1, evaluated 2",
                                      "step 3 of 5, epoch 2, evaluated 2", "step 4 of 5, epoch 2, evaluated 2",
                                      "evaluation 4 of 5, epoch 2, evaluated 2", "epoch 4 of 5, epoch 2, evaluated 2",
                                      "step 5 of 5, epoch 3, evaluated 2", "evaluation 5 of 5, epoch 3, evaluated 2"}));
}

TEST(Callback, StopsTheRunAfterAnEvaluationOfWhatItEndsWith) {
  const Folder folder;
  Events events, again;
  AfterStep callback([](TrainingState& state) {
    if (state.step == 5) state.stop();
  });
  TrainerOptions options;
  options.callbacks = {&callback};
  const auto result = run(folder.path(), {}, events, options);
  EXPECT_EQ(result.steps, 5);
  EXPECT_FALSE(result.interrupted);
  EXPECT_EQ(events.last<events::End>().outcome, "stopped early");
  EXPECT_EQ(events.last<events::Evaluation>().step, 5);
  EXPECT_EQ(events.last<events::End>().checkpoint, folder.path() + "/checkpoints/step-00000005");
  EXPECT_EQ(run(folder.path(), {}, again, options).steps, 5);
  EXPECT_EQ(again.last<events::End>().outcome, "already finished");
}

TEST(Callback, ChangesTheLearningRateFromTheNextStepOn) {
  const Folder folder;
  Events events;
  AfterStep callback(decay);
  TrainerOptions options;
  options.callbacks = {&callback};
  (void)run(folder.path(), {"steps=5"}, events, options);
  std::vector<double> rates;
  for (const auto& step : events.of<events::Step>()) rates.push_back(step.learning_rate);
  EXPECT_EQ(rates, (std::vector<double>{0.01, 0.01, 0.01, 0.005, 0.005}));
}

TEST(Callback, TheBitsDoNotDependOnTheRanks) {
  const auto decays = [](int) { return decay; };
  const std::string alone = hash_on(1, decays);
  EXPECT_NE(alone, hash_on(1, [](int) { return [](TrainingState&) {}; }));
  EXPECT_EQ(alone, hash_on(2, decays));
  EXPECT_EQ(alone, hash_on(3, decays));
}

TEST(Callback, TheFirstRanksRequestsHold) {
  const auto alone = hash_on(1, [](int) { return decay; });
  EXPECT_EQ(alone, hash_on(2, [](int rank) -> Handler {
              if (rank == 0) return decay;
              return [](TrainingState& state) { state.stop(), state.set_learning_rate_factor(7); };
            }));
}

TEST(Callback, ACheckpointKeepsTheLearningRate) {
  const auto decays = [](int) { return decay; };
  const std::string uninterrupted = hash_on(1, decays);
  for (const std::int64_t stop : {3, 4}) {
    const Folder folder;
    (void)hash_on(1, decays, folder.path(), stop);
    EXPECT_EQ(hash_on(2, decays, folder.path()), uninterrupted) << stop;
  }
}

TEST(Callback, WritesACheckpointWhenItIsAsked) {
  const auto written = [](std::vector<std::string> overrides) {
    const Folder folder;
    Events events;
    AfterStep asks([](TrainingState& state) { state.checkpoint(state.step == 3 || state.step == 4); });
    (void)run(folder.path(), std::move(overrides), events, {.callbacks = {&asks}});
    std::vector<std::int64_t> steps;
    for (const auto& checkpoint : events.of<events::Checkpoint>()) steps.push_back(checkpoint.step);
    return steps;
  };
  EXPECT_EQ(written({"checkpoint.every=6 steps"}), (std::vector<std::int64_t>{3, 4, 6, 12}));
  EXPECT_TRUE(written({"checkpoint=never"}).empty());
}

TEST(Callback, AFactorThatIsNoNumberIsAMistake) {
  try {
    (void)hash_on(2, [](int) {
      return [](TrainingState& state) { state.set_learning_rate_factor(std::numeric_limits<double>::quiet_NaN()); };
    });
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_STREQ(
        error.what(),
        "step 1: expected a factor of the learning rate that is 0 or more, found nan, which a callback has set");
  }
}

}  // namespace lockstep
