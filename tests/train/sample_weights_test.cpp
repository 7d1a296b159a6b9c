// Weights of samples, from the data set to the parameters: what the weighted mean is, on any number of ranks.
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "lockstep/trained_model.hpp"
#include "train/every_loss.hpp"
#include "train/outcome_of_ranks.hpp"
#include "train/small_run.hpp"

namespace lockstep {

namespace {

const std::string kEvenDigits = "data.class_weights=[1, 0, 1, 0, 1, 0, 1, 0, 1, 0]";

}  // namespace

TEST(SampleWeights, ThatAreAllAlikeChangeNothing) {
  const Folder folder;
  Events events;
  const auto plain = run(folder.path() + "/plain", {}, events);
  const auto twice = run(folder.path() + "/twice", {"data.class_weights=[2, 2, 2, 2, 2, 2, 2, 2, 2, 2]"}, events);
  EXPECT_EQ(twice.parameters_sha256, plain.parameters_sha256);
  EXPECT_EQ(twice.loss, plain.loss);
  const auto even = run(folder.path() + "/even", {kEvenDigits}, events);
  EXPECT_NE(even.parameters_sha256, plain.parameters_sha256);
}

// One batch of all samples: the loss of step 1 is that of the first parameters.
TEST(SampleWeights, AreWhatTheMeanDividesBy) {
  const Folder folder;
  const auto loss_with = [&](const std::string& name, const std::string& weights) {
    Events events;
    run(folder.path() + "/" + name, {"batch_size=64", "steps=1", "data.class_weights=" + weights}, events);
    return events.last<events::Step>().loss;
  };
  const Registries registries = Registries::built_in();
  const double even = loss_with("even", "[1, 0, 1, 0, 1, 0, 1, 0, 1, 0]"),
               odd = loss_with("odd", "[0, 1, 0, 1, 0, 1, 0, 1, 0, 1]");
  const JobFile job = load_job("", {"data.train.digits=64"}, registries);
  std::int64_t evens = 0;
  {
    Events events;
    run(folder.path() + "/count", {"batch_size=64", "steps=1", "data.class_weights=balanced"}, events);
    const std::string text = *events.last<events::Start>().weights;
    EXPECT_TRUE(text.starts_with("by class: 0 ")) << text;
    // 64 / (10 * n): the weights say how many samples a class has.
    for (std::size_t at = text.find(':') + 2, c = 0; c < 10; ++c, at = text.find(", ", at) + 2) {
      const double weight = std::stod(text.substr(text.find(' ', at) + 1));
      if (c % 2 == 0) evens += std::llround(6.4 / weight);
    }
  }
  ASSERT_GT(evens, 0);
  ASSERT_LT(evens, 64);
  const double n = static_cast<double>(evens), m = 64 - n;
  EXPECT_NEAR(loss_with("both", "[3, 0.5, 3, 0.5, 3, 0.5, 3, 0.5, 3, 0.5]"),
              (3 * n * even + 0.5 * m * odd) / (3 * n + 0.5 * m), 1e-5);
}

TEST(SampleWeights, OnAnyNumberOfRanks) {
  const std::string balanced = "data.class_weights=balanced";
  const Outcome alone = run_job(kResidualJob, 1, {balanced});
  EXPECT_NE(alone, run_job(kResidualJob, 1, {}));
  for (const int ranks : {2, 3}) EXPECT_EQ(run_job(kResidualJob, ranks, {balanced}), alone) << ranks << " ranks";
  EXPECT_EQ(run_job(kResidualJob, 2, {balanced, "parallel.parts=2"}), alone) << "in two parts";
  EXPECT_EQ(run_job(kResidualJob, 3, {balanced, "precision=fp16"}),
            run_job(kResidualJob, 1, {balanced, "precision=fp16"}));
}

TEST(SampleWeights, OfEveryLossAreNumbersOfCopies) {
  const Folder folder;
  const std::string plain = folder.path() + "/plain.csv", repeated = folder.path() + "/repeated.csv",
                    weighted = folder.path() + "/weighted.csv", by_class = folder.path() + "/by_class.csv";
  const auto once = [](int) { return 1; };
  write_loss_rows(plain);
  write_loss_rows(repeated, [](int row) { return 1 + row % 3; });  // two of each, on average
  write_loss_rows(weighted, once, [](int row) { return 1 + row % 3; });
  write_loss_rows(by_class, once, [](int row) {
    return std::array{2.0, 1.0, 0.5}.at(static_cast<std::size_t>(kind_of_row(row)));
  });
  for (LossCase of : kEveryLoss) {
    if (of.loss == "contrastive") continue;  // whose samples do not stand alone
    SCOPED_TRACE(of.loss);
    of.metrics = "";
    const auto outcome = [&](const std::string& path, int rows, const std::string& weight, int ranks = 1) {
      return run_job(job_of_loss(of, path, rows, weight, plain), ranks, {});
    };
    const Outcome counted = outcome(weighted, kLossRows, ", weight: w"), copied = outcome(repeated, 2 * kLossRows, "");
    const Outcome alike = outcome(plain, kLossRows, "");
    EXPECT_NEAR(counted.loss, copied.loss, 2e-5 * copied.loss);
    const double loss = copied.metrics.at("loss");  // of rows that count alike, in evaluations: of what was learnt
    EXPECT_NEAR(counted.metrics.at("loss"), loss, 2e-5 * loss);
    EXPECT_GT(std::abs(alike.loss - copied.loss), 1e-4 * copied.loss);
    for (const int ranks : {2, 3}) EXPECT_EQ(outcome(weighted, kLossRows, ", weight: w", ranks), counted) << ranks;
    if (of.target != "kind") continue;
    const std::vector<std::string> weights = {"data.class_weights={kind0: 2, kind2: 0.5}"};
    EXPECT_EQ(run_job(job_of_loss(of, plain, kLossRows, "", plain), 2, weights),
              outcome(by_class, kLossRows, ", weight: w"));
  }
}

TEST(SampleWeights, AfterAStop) {
  const Folder folder;
  Events events;
  const auto whole = run(folder.path() + "/whole", {"data.class_weights=balanced"}, events);
  TrainerOptions until;
  until.stop_at = 5;
  run(folder.path() + "/stopped", {"data.class_weights=balanced"}, events, until);
  EXPECT_EQ(run(folder.path() + "/stopped", {"data.class_weights=balanced"}, events).parameters_sha256,
            whole.parameters_sha256);
}

// A model that has learnt even digits only is judged by all.
TEST(SampleWeights, DoNotCountInValidation) {
  const Folder folder;
  Events events;
  const auto result = run(folder.path(), {kEvenDigits, "steps=40"}, events);
  const Registries registries = Registries::built_in();
  const auto alone = make_single_communicator();
  TrainedModel model(load_job(folder.path(), {}, registries, false), "newest", registries, *alone);
  EXPECT_EQ(model.evaluate("validation").metrics.at("loss"), result.metrics.at("loss"));
  EXPECT_LT(result.metrics.at("accuracy"), 0.6);
}

TEST(SampleWeightErrors, ExactWords) {
  const Folder folder;
  const auto refused = [&](const std::vector<std::string>& overrides) -> std::string {
    Events events;
    try {
      run(folder.path() + "/run", overrides, events);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refused({"data.class_weights={cat: 2}"}),
            "command line: data.class_weights: expected names of classes, found 'cat', which is none of the training "
            "set's 10");
  EXPECT_EQ(refused({"data.class_weights=balanced", "data.mix.mixup=0.2"}),
            "command line: data.mix: expected samples without weights, since a mixed sample is of two classes, found "
            "some with; leave out mix or the weights");
  EXPECT_EQ(
      refused({"data.class_weights=balanced", "loss=contrastive"}),
      "command line: loss: expected samples without weights, since with contrastive the loss of each depends on all "
      "samples of its micro-batch, found some with; leave out the weights, or take triplet");
  // Of 64 digits only few are a 7, and none in some batch of 4.
  EXPECT_EQ(refused({"batch_size=4", "micro_batches=1", "steps=16",
                     "data.class_weights={0: 0, 1: 0, 2: 0, 3: 0, 4: 0, 5: 0, 6: "
                     "0, 8: 0, 9: 0}"})
                .substr(7),
            " nothing of the batch counts: all of its samples have weight 0, or all of its targets are ignored; use a "
            "larger batch");
}

}  // namespace lockstep
