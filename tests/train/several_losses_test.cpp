// Several losses of one model: what their sum is, and that ranks, parts, stops and precision change no bit of it.
#include <gtest/gtest.h>

#include <fstream>

#include "graph/model_graph.hpp"
#include "lockstep/trained_model.hpp"
#include "train/outcome_of_ranks.hpp"
#include "train/small_run.hpp"

namespace lockstep {

namespace {

/// Two heads: which digit it is, and where its ink is.
constexpr const char* kTwoHeads = R"(
job:
  name: heads
  seed: 3
  model:
    layers:
      - {conv: {filters: 4, kernel: 3}}
      - {relu: {}, name: trunk}
      - {conv: {filters: 1, kernel: 3}, name: ink}
      - {max_pool: {kernel: 4}, inputs: trunk}
      - flatten
      - {dropout: 0.2}
      - {linear: {features: 10}, name: digit}
    inputs: image
  data:
    train: {digits: {count: 96, masks: true}}
    validation: {digits: {count: 40, first: 100000, masks: true}}
    normalize: never
  batch_size: 32
  micro_batches: 8
  steps: 6
  loss:
    - {cross_entropy: {}, target: label, output: digit, name: digit}
    - {binary_cross_entropy: {}, target: mask, output: ink, weight: 0.5}
  metrics: [digit/accuracy, mask/iou]
  optimizer: {adamw: {weight_decay: 0.01}}
  learning_rate: 0.01
  clip_norm: 0.5
  evaluate: {every: 3 steps}
  checkpoint: never
)";

const std::string kOnce =
    "loss=[{cross_entropy: {}, weight: 0.5, name: a}, {cross_entropy: {}, weight: 0.25, name: b}, "
    "{cross_entropy: {}, weight: 0.25, name: c}]";

/// Rows with a class, a number and a weight.
std::string write_rows(const Folder& folder) {
  const std::string path = folder.path() + "/rows.csv";
  std::ofstream file(path);
  file << "x,z,kind,price,trust\n";
  for (int i = 0; i < 120; ++i) {
    file << i % 7 << "," << i % 11 << ","
         << (i % 3 == 0   ? "flat"
             : i % 3 == 1 ? "house"
                          : "villa")
         << "," << (i % 7) * 0.5 + i % 3 << "," << i % 4 << "\n";
  }
  return path;
}

std::string table_job(const std::string& path, const std::string& loss) {
  return R"(
job:
  name: rows
  model:
    layers:
      - {linear: {features: 8}}
      - {relu: {}, name: trunk}
      - {linear: {features: 3}, name: kinds}
      - {linear: {features: 1}, name: prices, inputs: trunk}
  data:
    train: {table: {path: )" +
         path + R"(, target: [kind, price], weight: trust}}
    validation: {fraction: 0.2}
  batch_size: 24
  micro_batches: 6
  steps: 9
  loss: )" +
         loss + R"(
  metrics: [kind/accuracy, price/mae]
  optimizer: adam
  learning_rate: 0.02
  evaluate: {every: 3 steps}
  checkpoint: never
)";
}

constexpr const char* kKindAndPrice =
    "[{cross_entropy: {}, target: kind, output: kinds}, {mean_squared_error: {}, target: price, output: prices, "
    "weight: "
    "0.25}]";

}  // namespace

TEST(SeveralLosses, RanksPartsAndPrecisionChangeNoBit) {
  for (const char* precision : {"precision=fp32", "precision=bf16", "precision=fp16"}) {
    const Outcome alone = run_job(kTwoHeads, 1, {precision, "threads=1"});
    EXPECT_EQ(alone.metrics.size(), 5U) << "the sum, each loss, and a metric of each";
    for (const int ranks : {2, 3}) {
      EXPECT_EQ(run_job(kTwoHeads, ranks, {precision, "threads=2"}), alone) << ranks << " ranks, " << precision;
    }
    EXPECT_EQ(run_job(kTwoHeads, 2, {precision, "parallel.parts=2"}), alone) << "in two parts, " << precision;
  }
  EXPECT_EQ(run_job(kTwoHeads, 3, {"parallel.sharding=optimizer"}), run_job(kTwoHeads, 1, {}));
  TrainerOptions plain;
  plain.lowered = false;
  EXPECT_EQ(run_job(kTwoHeads, 2, {}, {}, plain), run_job(kTwoHeads, 1, {}));
}

TEST(SeveralLosses, AStopChangesNoBit) {
  const Outcome unbroken = run_job(kTwoHeads, 1, {});
  const Folder folder;
  const std::vector<std::string> kept = {"run_directory=" + folder.path() + "/run", "checkpoint={every: 2 steps}"};
  TrainerOptions until;
  until.stop_at = 3;
  run_job(kTwoHeads, 2, kept, {}, until);
  EXPECT_EQ(run_job(kTwoHeads, 3, kept), unbroken);
}

// Of weights that are powers of two, products and their sums are exact.
TEST(SeveralLosses, TheWeightedSumOfOneIsThatOne) {
  const Outcome one = run_job(kResidualJob, 2, {"metrics=[]"});
  for (const char* precision : {"precision=fp32", "precision=fp16"}) {
    const Outcome single = run_job(kResidualJob, 2, {"metrics=[]", precision});
    const Outcome several = run_job(kResidualJob, 2, {"metrics=[]", kOnce, precision});
    EXPECT_EQ(several.parameters, single.parameters) << precision;
    EXPECT_EQ(several.loss, single.loss);
    EXPECT_EQ(several.metrics.at("loss"), single.metrics.at("loss"));
    EXPECT_EQ(several.metrics.at("b/loss"), single.metrics.at("loss"));
  }
  EXPECT_NE(run_job(kResidualJob, 2, {"metrics=[]", kOnce, "loss[0].weight=0.75"}).parameters, one.parameters);
}

// They are factors of a sample's sum.
TEST(SeveralLosses, ClassesHaveWeights) {
  const std::string balanced = "data.class_weights=balanced";
  const Outcome alone = run_job(kTwoHeads, 1, {balanced});
  EXPECT_NE(alone, run_job(kTwoHeads, 1, {}));
  EXPECT_EQ(run_job(kTwoHeads, 2, {"data.class_weights=[2, 2, 2, 2, 2, 2, 2, 2, 2, 2]"}), run_job(kTwoHeads, 1, {}));
  for (const int ranks : {2, 3}) EXPECT_EQ(run_job(kTwoHeads, ranks, {balanced, "threads=2"}), alone) << ranks;
  EXPECT_EQ(run_job(kTwoHeads, 2, {balanced, "parallel.parts=2"}), alone) << "in two parts";
  const Outcome single = run_job(kResidualJob, 1, {"metrics=[]", balanced});
  const Outcome several = run_job(kResidualJob, 2, {"metrics=[]", kOnce, balanced});
  EXPECT_EQ(several.parameters, single.parameters);
  EXPECT_EQ(several.loss, single.loss);
}

TEST(SeveralLosses, TheSumIsOfTheMeans) {
  const Folder folder;
  Events events;
  run(folder.path(),
      {"data.normalize=never", "data.train.digits={count: 64, masks: true}",
       "data.validation.digits={count: 40, first: 100000, masks: true}",
       "model={layers: [{flatten: {}, name: flat}, {linear: {features: 10}}, {conv: {filters: 1, kernel: 1}, name: "
       "ink, "
       "inputs: image}], inputs: image}",
       "loss=[{cross_entropy: {}, output: linear1}, {binary_cross_entropy: {}, target: mask, output: ink, weight: 3}]",
       "metrics=[label/accuracy, mask/iou]", "checkpoint.best=mask/loss"},
      events);
  for (const auto& step : events.of<events::Step>()) {
    EXPECT_NEAR(step.loss, step.metrics.at("label/loss") + 3 * step.metrics.at("mask/loss"), 1e-5) << step.step;
  }
  const auto eval = events.last<events::Evaluation>();
  EXPECT_EQ(eval.metrics.size(), 4U);
  EXPECT_NEAR(eval.loss, eval.metrics.at("label/loss") + 3 * eval.metrics.at("mask/loss"), 1e-5);
  EXPECT_LT(eval.loss, events.of<events::Evaluation>().front().loss);
}

TEST(SeveralLosses, TargetsOfATable) {
  const Folder folder;
  const std::string job = table_job(write_rows(folder), kKindAndPrice);
  const Outcome alone = run_job(job, 1, {});
  for (const int ranks : {2, 3}) EXPECT_EQ(run_job(job, ranks, {}), alone) << ranks << " ranks";
  EXPECT_EQ(alone.metrics.size(), 5U);
  const std::string one =
      "loss=[{mean_squared_error: {}, target: price, output: prices, weight: 0.5, name: a}, "
      "{mean_squared_error: {}, target: price, output: prices, weight: 0.5, name: b}]";
  const Outcome twice = run_job(job, 3, {one, "metrics=[]", "model.inputs=features"});
  // The same with one target, which is counted by the rows' weights, too.
  const Outcome single = run_job(job, 1,
                                 {"loss={mean_squared_error: {}}", "metrics=[]", "data.train.table.target=price",
                                  "data.train.table.features=[x, z]",
                                  "model.layers=[{linear: {features: 8}}, {relu: {}, name: trunk}, {linear: "
                                  "{features: 3}, name: kinds}, {linear: {features: 1}, name: prices, inputs: "
                                  "trunk}]"});
  EXPECT_EQ(twice.loss, single.loss);
  EXPECT_EQ(twice.metrics.at("loss"), single.metrics.at("loss"));
}

TEST(SeveralLosses, PredictAllOutputs) {
  const Folder folder;
  const Registries registries = Registries::built_in();
  const std::vector<std::string> kept = {"run_directory=" + folder.path() + "/run", "checkpoint={every: 3 steps}"};
  run_job(kTwoHeads, 1, kept);
  const auto alone = make_single_communicator();
  TrainedModel model(load_job(folder.path() + "/run", {}, registries, false), "newest", registries, *alone);
  EXPECT_EQ(model.evaluate("validation").metrics.size(), 5U);
}

TEST(SeveralLossErrors, ExactWords) {
  const auto refused = [&](const std::vector<std::string>& overrides) -> std::string {
    try {
      run_job(kTwoHeads, 1, overrides);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(
      refused({"loss[0].output=digits"}),
      "job.loss: output: expected a layer of the model (conv1, trunk, ink, max_pool1, flatten1, dropout1, digit), "
      "found 'digits'; did you mean 'digit'?");
  EXPECT_EQ(refused({"loss[1].target=mas", "loss[1].name=mask"}),
            "job.loss: target: expected a feature of the data set (image, mask, label), found 'mas'; did you mean "
            "'mask'?");
  EXPECT_EQ(
      refused({"model.layers[6].linear.features=7"}),
      "job.yaml:6:5: job.model: expected a prediction of 10 classes or more, since the training set has samples of "
      "class 9 ('9'), found 7 as the last size of the model's output; give its last layer 10 features");
  EXPECT_EQ(
      refused({"loss[1]={contrastive: {}, output: digit}", "loss[1].name=pair", "metrics=[]",
               "data.class_weights=balanced"}),
      "job.yaml:23:5: job.loss: expected samples without weights, since with contrastive the loss of each depends "
      "on all samples of its micro-batch, found some with; leave out the weights, or take triplet");
  const Folder folder;
  try {
    run_job(table_job(write_rows(folder), kKindAndPrice), 1, {"data.class_weights=balanced"});
    ADD_FAILURE() << "weights of classes that no sample has";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "command line: data.class_weights: expected samples of one class each, found table; leave "
                 "class_weights out");
  }
  EXPECT_EQ(
      refused({"data.augment=[flip]"}),
      "command line: data.augment: expected no step that draws, since the target 'mask' is an image, for which it "
      "would draw something else, found 'flip'; leave it out, or augment the files");
}

}  // namespace lockstep
