// Runs of a small job as users start them: early stopping, the best checkpoint, resuming, starting again.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "lockstep/error.hpp"
#include "run/checkpoint/checkpoint.hpp"
#include "train/small_run.hpp"

namespace lockstep {

namespace {

std::string best_of(const std::string& directory) {
  std::ifstream file(directory + "/checkpoints/best");
  std::string name;
  file >> name;
  return name;
}

std::vector<std::string> kept(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory + "/checkpoints")) {
    if (entry.is_directory()) names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// The step whose evaluation has the highest accuracy, the first of equal ones.
std::string step_of_best_accuracy(const Events& events) {
  double best = -1;
  std::int64_t of_best = 0;
  for (const auto& eval : events.of<events::Evaluation>()) {
    const double accuracy = eval.metrics.at("accuracy");
    if (accuracy > best) {
      best = accuracy;
      of_best = eval.step;
    }
  }
  return (of_best < 10 ? "step-0000000" : "step-000000") + std::to_string(of_best);
}

}  // namespace

TEST(Run, EarlyStoppingAndTheBestCheckpointWatchTheirOwnMetrics) {
  const Folder folder;
  Events events;
  // With a rate of almost 0 no loss ever improves, but the first accuracy is the best one.
  const auto result =
      run(folder.path(), {"learning_rate=1e-30", "early_stop={metric: loss, patience: 3}", "checkpoint.best=accuracy"},
          events);
  EXPECT_EQ(result.steps, 8);  // evaluations at 2, 4, 6, 8; the last three do not improve
  EXPECT_EQ(best_of(folder.path()), "step-00000002");
  EXPECT_EQ(events.last<events::End>().outcome, "stopped early");

  const Folder other;
  Events learning;
  (void)run(other.path(), {"early_stop={metric: loss, patience: 100}", "checkpoint.best=accuracy", "checkpoint.keep=1"},
            learning);
  EXPECT_EQ(best_of(other.path()), step_of_best_accuracy(learning));
}

TEST(Run, AnImprovementThatIsTooSmallDoesNotCount) {
  const Folder folder;
  Events events;
  const auto result = run(folder.path(), {"early_stop={metric: loss, patience: 3, min_delta: 100}"}, events);
  EXPECT_EQ(result.steps, 8);
  const auto evaluations = events.of<events::Evaluation>();
  EXPECT_LT(evaluations.back().loss, evaluations.front().loss);
}

namespace {

std::vector<double> rates_of(const Events& events) {
  std::vector<double> rates;
  for (const auto& step : events.of<events::Step>()) rates.push_back(step.learning_rate);
  return rates;
}

/// No loss is better by 100: but for the first, no evaluation improves.
constexpr const char* kPlateau =
    "learning_rate={peak: 0.5, schedule: {plateau: {factor: 0.5, patience: 2, min_delta: 100, cooldown: 1}}}";

}  // namespace

TEST(Run, TheLearningRateFallsOnAPlateau) {
  const Folder folder;
  Events events;
  (void)run(folder.path(), {kPlateau, "evaluate.every=1 steps"}, events);
  // Evaluations 2 and 3 do not improve, 4 is of the cool-down, 5 and 6 do not improve, ...
  EXPECT_EQ(rates_of(events),
            (std::vector<double>{0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.125, 0.125, 0.125, 0.0625, 0.0625, 0.0625}));
}

TEST(Run, APlateauGoesOnAfterAnInterruption) {
  const Folder whole, broken;
  Events unbroken, before, after;
  const std::vector<std::string> job = {kPlateau, "evaluate.every=1 steps", "checkpoint.every=1 steps"};
  const TrainResult expected = run(whole.path(), job, unbroken);
  // In the middle of waiting, before a fall, and in a cool-down.
  for (const int stop : {2, 5, 6}) {
    TrainerOptions options;
    options.stop_at = stop;
    (void)run(broken.path(), job, before, options);
  }
  EXPECT_EQ(run(broken.path(), job, after).parameters_sha256, expected.parameters_sha256);
  const std::vector<double> all = rates_of(unbroken), last = rates_of(after);
  EXPECT_EQ(last, std::vector<double>(all.begin() + 6, all.end()));
}

TEST(Run, TheBestCheckpointMayFallOnADueStep) {
  const Folder folder;
  Events events;
  // Due at every step with an evaluation: the best is written once, named, and kept beside the newest.
  (void)run(folder.path(), {"learning_rate=1e-30", "checkpoint={every: 2 steps, keep: 1, best: accuracy}"}, events);
  EXPECT_EQ(events.count<events::Checkpoint>(), 6);
  EXPECT_EQ(best_of(folder.path()), "step-00000002");
  EXPECT_EQ(kept(folder.path()), (std::vector<std::string>{"step-00000002", "step-00000012"}));
}

TEST(Run, AFinishedRunIsNotTrainedAgain) {
  const Folder folder;
  Events first, second;
  const auto done = run(folder.path(), {}, first);
  EXPECT_EQ(first.last<events::End>().outcome, "done");
  const auto again = run(folder.path(), {}, second);
  EXPECT_EQ(second.last<events::End>().outcome, "already finished");
  EXPECT_EQ(again.steps, 12);
  EXPECT_EQ(again.samples, 0);
  EXPECT_EQ(again.parameters_sha256, done.parameters_sha256);
  EXPECT_EQ(again.metrics, done.metrics);
  EXPECT_EQ(second.count<events::Restart>(), 0);
  EXPECT_EQ(second.count<events::Checkpoint>(), 0);
}

TEST(Run, AnInterruptedRunSaysWhereItsCheckpointIs) {
  const Folder folder;
  Events events, on;
  TrainerOptions options;
  options.stop_at = 3;
  EXPECT_TRUE(run(folder.path(), {}, events, options).interrupted);
  EXPECT_EQ(events.last<events::End>().outcome, "interrupted");
  EXPECT_EQ(events.last<events::End>().checkpoint, folder.path() + "/checkpoints/step-00000003");
  (void)run(folder.path(), {}, on);
  EXPECT_EQ(on.last<events::Restart>().path, folder.path() + "/checkpoints/step-00000003");

  Events never;
  EXPECT_TRUE(run(folder.path(), {"checkpoint=never"}, never, options).interrupted);
  EXPECT_EQ(never.last<events::End>().checkpoint, std::nullopt);
}

TEST(Run, DamagedCheckpointsArePassedOver) {
  const Folder folder;
  Events first, second;
  const TrainResult quiet = run(folder.path(), {}, first);
  const std::string checkpoints = folder.path() + "/checkpoints";
  const std::string file = checkpoints + "/step-00000012/model.safetensors";
  const auto bytes = fs::file_size(file);
  fs::resize_file(file, 9);
  fs::resize_file(checkpoints + "/step-00000008/manifest.json", 0);
  const TrainResult again = run(folder.path(), {}, second);
  EXPECT_EQ(second.last<events::Restart>().step, 4);
  EXPECT_EQ(second.last<events::Warning>().message,
            fmt::format("passed over a damaged checkpoint: {}: damaged: expected {} bytes, found 9; "
                        "{}/step-00000008/manifest.json: damaged: it is not the JSON that was written",
                        file, bytes, checkpoints));
  EXPECT_EQ(again.parameters_sha256, quiet.parameters_sha256);
}

TEST(Run, MetricsThatAreNoNumbersDoNotSpoilACheckpoint) {
  const Folder folder;
  // The first update makes parameters so large that the evaluation after it gives no number.
  for (const int evaluations : {1, 0}) {  // the second run resumes from the checkpoint of the first
    Events events;
    try {
      (void)run(
          folder.path(),
          {"learning_rate=1e38", "optimizer=sgd", "evaluate.every=1 steps", "checkpoint={every: 1 steps, best: loss}"},
          events);
      ADD_FAILURE() << "expected it to diverge";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::diverged) << error.what();
    }
    EXPECT_EQ(events.count<events::Evaluation>(), evaluations);
    EXPECT_EQ(kept(folder.path()), (std::vector<std::string>{"step-00000001"}));
    EXPECT_EQ(best_of(folder.path()), "");
  }
}

TEST(Run, ParametersThatAreNoNumbersAreNotStored) {
  const Folder folder;
  Events events;
  try {
    (void)run(folder.path(), {"learning_rate=1e39", "optimizer=sgd", "checkpoint={every: 1 steps}"}, events);
    ADD_FAILURE() << "expected it to diverge";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::diverged);
    const std::string text = error.what();
    EXPECT_TRUE(text.starts_with("step 1: after the update, the model's '")) << text;
    EXPECT_TRUE(text.ends_with(": it is not stored; try a smaller learning rate, a longer warm-up, or clip_norm"))
        << text;
  }
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/checkpoints/step-00000001"));
}

namespace {

/// The refusal of a run that goes on in this directory.
std::string refusal(const Folder& folder, std::vector<std::string> overrides) {
  Events events;
  try {
    (void)run(folder.path(), std::move(overrides), events);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::configuration);
    return error.what();
  }
  return "it went on";
}

}  // namespace

TEST(Run, TrainsLonger) {
  for (const std::string schedule : {"constant", "{steps: {milestones: [5 steps]}}", "{wsd: {decay: 0.4}}"}) {
    const bool decays = schedule == "{wsd: {decay: 0.4}}";
    const std::string rate = "learning_rate={peak: 0.01, schedule: " + schedule + "}";
    const Folder whole, longer;
    Events events;
    const TrainResult unbroken = run(whole.path(), {rate, "steps=20"}, events);
    TrainerOptions options;
    if (decays) options.stop_at = 8;  // of 12, whose rates fall from the ninth step on
    (void)run(longer.path(), {rate}, events, options);
    Events after;
    const TrainResult result = run(longer.path(), {rate, "steps=20"}, after);
    EXPECT_EQ(result.parameters_sha256, unbroken.parameters_sha256) << schedule;
    EXPECT_EQ(after.count<events::Step>(), decays ? 12 : 8) << schedule;
    (void)run(longer.path(), {rate, "steps=20"}, after);  // the length that it has now is saved
    const auto restarts = after.of<events::Restart>();
    ASSERT_EQ(restarts.size(), 1U) << schedule;
    EXPECT_EQ(restarts.front().message, "job.steps: 12, now 20") << schedule;
    const auto history = checkpoint::open_checkpoint(longer.path() + "/checkpoints/step-00000020").manifest.progress;
    ASSERT_EQ(history.earlier_settings.size(), 1U) << schedule;
    EXPECT_EQ(history.earlier_settings.front().until, decays ? 8 : 12) << schedule;
    EXPECT_EQ(config::differences(history.earlier_settings.front().job, history.job),
              std::vector<std::string>{"job.steps: 12, now 20"});
  }
}

TEST(Run, DoesNotTrainLongerWithOtherLearningRates) {
  const Folder folder;
  const std::string rate = "learning_rate={peak: 0.01, schedule: cosine}", where = folder.path() + "/checkpoints/step-";
  Events events;
  (void)run(folder.path(), {rate}, events);
  EXPECT_EQ(refusal(folder, {rate, "steps=20"}),
            where +
                "00000012: this run began with 12 steps, and with 20 the schedule 'cosine' has other learning rates "
                "for what it has done (step 2: 0.00982963, now 0.00993844); restore its length, or name a schedule for "
                "what is left and add --change-settings (learning_rate.schedule=constant)");
  EXPECT_EQ(refusal(folder, {rate, "steps=20", "batch_size=8"}),
            where +
                "00000012: this checkpoint is of another job:\n"
                "  job.batch_size: 16, now 8; job.steps: 12, now 20\n"
                "restore the old values, or choose a new run_directory");
}

TEST(Run, RefusesAnotherModelInThreeLines) {
  const Folder folder;
  Events events;
  (void)run(folder.path(), {}, events);
  const std::string begin = folder.path() + "/checkpoints/step-00000012: this checkpoint is of another job:\n  ",
                    end = "\nrestore the old values, or choose a new run_directory";
  EXPECT_EQ(refusal(folder, {"model=lenet"}), begin + "job.model: layers, now lenet" + end);
  EXPECT_EQ(refusal(folder, {"model={layers: [flatten, {linear: {features: 16}}, relu, {linear: {features: 10}}]}"}),
            begin + "job.model.layers: 2 entries, now 4 entries" + end);
}

TEST(Run, GoesOnWithANewLeg) {
  const std::string cosine = "learning_rate={peak: 0.01, schedule: cosine}",
                    constant = "learning_rate={peak: 0.002, schedule: constant}";
  std::vector<std::string> hashes;
  for (const int stop : {0, 16}) {
    const Folder folder;
    Events events, leg;
    (void)run(folder.path(), {cosine}, events);
    TrainerOptions options;
    options.change_settings = true;
    options.stop_at = stop;
    TrainResult result = run(folder.path(), {constant, "steps=20"}, leg, options);
    if (stop > 0) result = run(folder.path(), {constant, "steps=20"}, leg);
    EXPECT_EQ(result.steps, 20);
    hashes.push_back(result.parameters_sha256);
    EXPECT_EQ(leg.of<events::Restart>().front().message,
              "job.steps: 12, now 20; job.learning_rate.peak: 0.01, now 0.002; job.learning_rate.schedule: cosine, "
              "now constant");
    for (const auto& step : leg.of<events::Step>()) EXPECT_EQ(step.learning_rate, 0.002);
    EXPECT_EQ(leg.count<events::Step>(), 8);
  }
  EXPECT_EQ(hashes.front(), hashes.back());
}

TEST(Run, DoesNotGetShorterThanItIs) {
  const Folder folder;
  Events events;
  (void)run(folder.path(), {}, events);
  EXPECT_EQ(refusal(folder, {"steps=8"}), folder.path() +
                                              "/checkpoints/step-00000012: the run has done 12 steps, more "
                                              "than the 8 that the job now has; restore its length, or "
                                              "choose a new run_directory");
}

// The variance of one value is 0.
TEST(Start, BatchNormOverOneValueIsRefused) {
  const Registries registries = Registries::built_in();
  const std::string expected =
      "job.yaml:6:18: job.micro_batches: expected micro-batches of several samples, since layer 'norm' normalizes over "
      "a "
      "micro-batch, found ";
  for (const auto& [batch_size, found] :
       {std::pair(32,
                  "32 micro-batches of a batch of 32, where it sees one value a channel; set micro_batches to 16 or "
                  "less"),
        std::pair(1, "one of a batch of 1, where it sees one value a channel; set batch_size to 2 or more")}) {
    const JobFile job = config::load_text(fmt::format(R"(
job:
  model: {{layers: [flatten, {{linear: {{features: 8}}}}, {{batch_norm: {{}}, name: norm}}, relu, {{linear: {{features: 10}}}}]}}
  data: {{train: {{digits: {{count: 64}}}}}}
  batch_size: {0}
  micro_batches: {0}
  steps: 1
  checkpoint: never
)",
                                                      batch_size),
                                          "job.yaml", {}, train::catalogue_of(registries), false);
    run_in_threads(1, [&](Communicator& communicator) {
      try {
        (void)train_job(job, communicator, registries, {});
        ADD_FAILURE() << "it trained to a running variance of 0";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::configuration);
        EXPECT_EQ(error.what(), expected + found);
      }
    });
  }
}

}  // namespace lockstep
