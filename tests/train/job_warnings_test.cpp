// What the start of a run and `lockstep check` say about a job before it trains: the exact sentences.
#include "run/train/job_warnings.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "run/train/job_graph.hpp"
#include "train/small_run.hpp"

namespace lockstep::train {

namespace {

struct Said {
  std::vector<std::string> warnings;
  std::string error;
};

Said of(const std::vector<std::string>& overrides) {
  const Registries registries = Registries::built_in();
  const JobFile job = config::load_text(kJob, "job.yaml", overrides, catalogue_of(registries), false);
  const auto data = input::learn(job.data, job.seed, job.batch_size, registries, {});
  try {
    return {job_warnings(make_job_graph(job, data, registries), data), ""};
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::configuration);
    return {{}, error.what()};
  }
}

using Sentences = std::vector<std::string>;

TEST(JobWarnings, AnOrdinaryJobHasNone) {
  EXPECT_EQ(of({}).warnings, Sentences{});
  EXPECT_EQ(of({"loss=mean_squared_error", "model.layers=[flatten, {linear: {features: 1}}]", "metrics=[]"}).warnings,
            Sentences{});
}

TEST(JobWarnings, OfAMetricThatIsNeverEvaluated) {
  std::vector<std::string> job = {"data={train: {digits: {count: 64, pairs: true}}}",
                                  "evaluate=never",
                                  "metrics=[auc]",
                                  "model.inputs=left",
                                  "model.layers=[flatten, {linear: 1}]",
                                  "loss=binary_cross_entropy"};
  EXPECT_EQ(of(job).warnings, (Sentences{"metric 'auc' is of a whole set, so steps do not report it, and there is no "
                                         "data.validation to evaluate it on"}));
  job[0] = "data={train: {digits: {count: 64, pairs: true}}, validation: {fraction: 0.25}}";
  EXPECT_EQ(of(job).warnings, Sentences{});
}

TEST(JobWarnings, OfAnActivationThatTheLossAppliesItself) {
  EXPECT_EQ(of({"model.layers=[flatten, {linear: {features: 10}}, softmax]"}).warnings,
            (Sentences{"layer 'softmax1': cross_entropy applies softmax itself, so it is applied twice: gradients are "
                       "small and training is slow; leave the layer out"}));
  const Folder folder;
  std::ofstream(folder.path() + "/rows.csv") << "a,b,positive\n1,2,0\n3,1,1\n2,2,1\n4,0,0\n";
  const std::vector<std::string> table = {
      "data={train: {table: {path: " + folder.path() + "/rows.csv, target: positive}}}",
      "evaluate=never",
      "batch_size=4",
      "loss=binary_cross_entropy",
      "metrics=[]",
      "model.layers=[{linear: {features: 1}}, sigmoid]"};
  EXPECT_EQ(
      of(table).warnings,
      (Sentences{"layer 'sigmoid1': binary_cross_entropy applies sigmoid itself, so it is applied twice: gradients "
                 "are small and training is slow; leave the layer out"}));
  EXPECT_EQ(of({"model.layers=[flatten, {linear: {features: 10}}, softmax]", "loss=mean_squared_error", "metrics=[]"})
                .warnings,
            Sentences{});
}

TEST(JobWarnings, OfClassesThatTheDataLack) {
  EXPECT_EQ(of({"model.layers=[flatten, {linear: {features: 1000}}]"}).warnings,
            (Sentences{"the model predicts 1000 classes, and the data set has 10: the others are never right; give the "
                       "last layer 10 features, unless later data has more classes"}));
}

TEST(JobWarnings, OfATopKOfAllClasses) {
  EXPECT_EQ(of({"metrics=[top5, top9]"}).warnings, Sentences{});
  EXPECT_EQ(of({"metrics=[top5, top10]"}).warnings,
            (Sentences{"metric 'top10' is always 1, since the model predicts 10 classes; ask for a smaller number"}));
}

TEST(JobWarnings, OfStatisticsOfOneSample) {
  const std::string layers =
      "model.layers=[{conv: {filters: 4, kernel: 3}}, batch_norm, flatten, {linear: {features: 10}}]";
  EXPECT_EQ(of({layers}).warnings, Sentences{});
  EXPECT_EQ(
      of({layers, "micro_batches=16"}).warnings,
      (Sentences{
          "layer 'batch_norm1' normalizes over a micro-batch, and a micro-batch is one sample: its statistics are not "
          "those of evaluation, which are means over many; use fewer micro-batches, a larger batch, or "
          "group_norm"}));
}

TEST(JobWarnings, OfPaddingThatCountsAsText) {
  const Folder folder;
  std::ofstream(folder.path() + "/texts.csv") << "text,label\nwet,water\ndark,lamp\nit drips,water\nno light,lamp\n";
  const auto with = [&](const std::string& pool) {
    return of({"data={train: {texts: {path: " + folder.path() + "/texts.csv}}}", "evaluate=never", "batch_size=4",
               "model.layers=[{embedding: {vocabulary: 256, width: 4}, inputs: tokens}, " + pool + ", {linear: 2}]"});
  };
  EXPECT_EQ(with("{mean: {axis: 1, inputs: [previous, length]}}").warnings, Sentences{});
  EXPECT_EQ(
      with("{mean: {axis: 1}}").warnings,
      (Sentences{"no layer reads 'length', so the padding behind the end of a text counts as text; name it as the "
                 "last input of attention, mean, max, global_pool, last or reverse"}));
}

TEST(JobWarnings, OfPaddingThatOneLayerCounts) {
  const Folder folder;
  std::ofstream(folder.path() + "/texts.csv") << "text,label\nwet,water\ndark,lamp\nit drips,water\nno light,lamp\n";
  const auto with = [&](const std::string& layers) {
    return of({"data={train: {texts: {path: " + folder.path() + "/texts.csv, context: 8}}}", "evaluate=never",
               "batch_size=4",
               "model.layers=[{embedding: {vocabulary: 256, width: 12}, inputs: tokens, name: x}, " + layers +
                   ", flatten, {linear: 2}]"});
  };
  const std::string seen = "{attention: {heads: 2, inputs: [previous, length]}, name: seen}";
  EXPECT_EQ(with("{linear: 36}, " + seen + ", {mean: {axis: 1, inputs: [previous, length]}}").warnings, Sentences{});
  EXPECT_EQ(with("{linear: 36}, " + seen + ", {mean: 2}").warnings, Sentences{});
  EXPECT_EQ(with("{linear: 36}, " + seen + ", {mean: {axis: 1}, name: middle}").warnings,
            (Sentences{"layer 'middle' counts the padding behind the end of a text, which other layers leave out; name "
                       "'length' as its last input"}));

  const auto refusal = [&](const std::string& mover, const std::string& name) {
    EXPECT_EQ(with(mover + ", {linear: 36}, " + seen).error,
              "job.yaml:3:10: job.model: layer 'seen' reads 'length' to leave out padding, but behind layer '" + name +
                  "' the positions are no longer the input's, so others would be left out; put '" + name +
                  "' behind 'seen', or leave out 'length'");
  };
  refusal("class_token", "class_token1");
  refusal("{slice: {axis: 1, begin: 2}}", "slice1");
  refusal("{concat: {axis: 1, inputs: [x, x]}}", "concat1");
  refusal("{transpose: [2, 1]}, {linear: 8}, {reshape: [4, 24]}", "linear1");
  refusal("{transpose: [2, 1]}, {linear: 8}, {transpose: [2, 1]}", "linear1");
  refusal("reverse", "reverse1");
  for (const std::string mover : {"{slice: {axis: 1, end: 5}}", "class_token, {slice: {axis: 1, begin: 1}}",
                                  "{transpose: [2, 1]}, {transpose: [2, 1]}", "{concat: {axis: 2, inputs: [x, x]}}",
                                  "{reverse: {inputs: [previous, length]}}", "{gru: 6}"}) {
    EXPECT_EQ(with(mover + ", {linear: 36}, " + seen).error, "") << mover;
  }
}

TEST(JobWarnings, OfAttentionThatSeesItsTarget) {
  const Folder folder;
  std::ofstream(folder.path() + "/text.txt") << std::string(200, 'a') + std::string(200, 'b');
  const auto with = [&](const std::string& settings, const std::string& masked, const std::string& loss) {
    return of({"data={train: {text: {path: " + folder.path() + "/text.txt, context: 8" + masked + "}}}",
               "evaluate=never", "loss=" + loss, "metrics=[]",
               "model.layers=[{embedding: {vocabulary: 3, width: 12}, inputs: tokens}, {linear: 36}, {attention: "
               "{heads: 2" +
                   settings + "}}, {linear: 3}]"})
        .warnings;
  };
  EXPECT_EQ(with(", causal: true", "", "cross_entropy"), Sentences{});
  EXPECT_EQ(with("", ", masked: 0.2", "{cross_entropy: {ignored_index: -100}}"), Sentences{});
  EXPECT_EQ(with("", "", "cross_entropy"),
            (Sentences{"layer 'attention1' sees the tokens that the model is to predict from those before them; add "
                       "`causal: true`"}));
}

TEST(JobGraph, RefusesFewerClassesThanTheDataHave) {
  EXPECT_EQ(
      of({"model.layers=[flatten, {linear: {features: 7}}]"}).error,
      "job.yaml:3:10: job.model: expected a prediction of 10 classes or more, since the training set has samples of "
      "class 9 ('9'), found 7 as the last size of the model's output; give its last layer 10 features");
  EXPECT_EQ(of({"model.layers=[flatten, {linear: {features: 9}}]", "loss={cross_entropy: {ignored_index: 9}}"}).error,
            "");
}

TEST(JobGraph, RefusesMetricsOfClassesForASinglePrediction) {
  EXPECT_EQ(
      of({"model.layers=[flatten, {linear: {features: 1}}]", "loss={binary_cross_entropy: {}}"}).error,
      "job.yaml:10:12: job.metrics: expected metrics of a single prediction, found 'accuracy', which looks for the "
      "largest of several; take binary_accuracy, f1 or auc, or cross_entropy and a prediction for each class");
}

TEST(JobGraph, LossesOfOnesOwnSayWhatTheirTargetsAre) {
  Registries registries = Registries::built_in();
  OpDef mine = registries.ops.at("cross_entropy");
  mine.name = "mine";
  registries.ops.add(std::move(mine));
  const JobFile job =
      config::load_text(kJob, "job.yaml", {"loss=mine", "metrics=[]", "model.layers=[flatten, {linear: 7}]"},
                        catalogue_of(registries), false);
  const auto data = input::learn(job.data, job.seed, job.batch_size, registries, {});
  try {
    (void)make_job_graph(job, data, registries);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "job.yaml:3:10: job.model: expected a prediction of 10 classes or more, since the training set has "
                 "samples of class 9 ('9'), found 7 as the last size of the model's output; give its last layer 10 "
                 "features");
  }
}

TEST(JobGraph, RefusesASmallerVocabularyThanTheTextHas) {
  const Folder folder;
  std::ofstream(folder.path() + "/text.txt") << "the quick brown fox jumps over the lazy dog, again and again\n";
  const auto with = [&](const std::string& tokenizer, const std::string& rows) {
    return of({"data={train: {text: {path: " + folder.path() + "/text.txt, context: 4, tokenizer: " + tokenizer + "}}}",
               "evaluate=never", "batch_size=4", "metrics=[]",
               "model.layers=[{embedding: {vocabulary: " + rows + ", width: 8}}, {linear: {features: 256}}]"});
  };
  EXPECT_EQ(
      with("characters", "20").error,
      "job.yaml:3:10: job.model: expected a vocabulary of 29 or more in layer 'embedding1', since the training set has "
      "so many different tokens, found 20");
  EXPECT_EQ(with("characters", "29").error, "");
  EXPECT_EQ(with("bytes", "128").error, "");
}

}  // namespace

}  // namespace lockstep::train
