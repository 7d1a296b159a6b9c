// Overrides on the command line: what they replace, and their places in messages.
#include <gtest/gtest.h>

#include "config/config.hpp"
#include "config/test_catalogue.hpp"

namespace lockstep::config {
namespace {

constexpr const char* kJob = R"(job:
  model: {layers: [flatten, {dropout: 0.2}, {linear: {features: 10}}]}
  data: {train: {digits: {count: 100}}, validation: {digits: {first: 5000}}}
  batch_size: 64
  epochs: 3
  optimizer: {sgd: {momentum: 0.9}}
  learning_rate: 0.1
  evaluate: never
)";

JobFile with(const std::vector<std::string>& overrides, const std::string& text = kJob) {
  return load_text(text, "job.yaml", overrides, test_catalogue(), false);
}

std::string problems_with(const std::vector<std::string>& overrides) {
  try {
    (void)with(overrides);
  } catch (const Problems& problems) {
    return problems.what();
  }
  return "none";
}

TEST(Override, SetsAndAdds) {
  const JobFile job = with({"batch_size=1e+02", "seed=7", "job.name=other", "metrics=[accuracy]"});
  EXPECT_EQ(job.batch_size, 100);
  EXPECT_EQ(job.seed, 7u);
  EXPECT_EQ(job.name, "other");
  EXPECT_EQ(job.metrics, std::vector<std::string>{"accuracy"});
  EXPECT_EQ(job.optimizer.attributes.number("momentum"), 0.9) << "what is not named stays";
}

TEST(Override, TheLastOneWins) {
  EXPECT_EQ(with({"seed=7", "seed=8"}).seed, 8u);
}

TEST(Override, ReplacesTheOtherAlternative) {
  EXPECT_EQ(with({"steps=40"}).steps, 40);
  EXPECT_EQ(with({"steps=40"}).epochs, 0);
  EXPECT_EQ(with({"optimizer.adamw.beta2=0.99"}).optimizer.kind, "adamw");
  EXPECT_EQ(with({"data.train.images=/x.tar"}).data.train.kind, SourceKind::images);
  EXPECT_EQ(with({"model.resnet.depth=20"}).model.zoo, "resnet");
  EXPECT_EQ(with({"model=lenet"}).model.zoo, "lenet");
  const JobFile job = with({"data.validation.fraction=0.1"});
  EXPECT_FALSE(job.data.validation);
  EXPECT_EQ(job.data.validation_fraction, 0.1);
}

TEST(Override, GoesIntoShortForms) {
  const JobFile job =
      with({"learning_rate.warmup=1 epoch", "evaluate.every=5 steps", "model.layers[1].dropout.rate=0.3"});
  EXPECT_EQ(job.learning_rate.peak, 0.1) << "the short form's value stays";
  EXPECT_EQ(job.learning_rate.warmup.amount, 1);
  EXPECT_FALSE(job.evaluate.never);
  EXPECT_EQ(job.evaluate.every.amount, 5);
  EXPECT_EQ(job.model.layers[1].attributes.number("rate"), 0.3);
}

TEST(Override, ReplacesALayersOp) {
  const JobFile job =
      with({"model.layers[0].conv.filters=3", "model.layers[0].conv.kernel=5", "model.layers[2].linear.features=4"});
  EXPECT_EQ(job.model.layers[0].op, "conv");
  EXPECT_EQ(job.model.layers[0].attributes.integer("filters"), 3);
  EXPECT_EQ(job.model.layers[2].attributes.integer("features"), 4);
}

TEST(Override, MakesAJobOfNothing) {
  EXPECT_EQ(with({"model=lenet", "data.train=digits", "steps=1"}, "").model.zoo, "lenet");
}

TEST(Override, PlacesSayCommandLine) {
  EXPECT_EQ(with({"batch_size=32"}).places.at("job.batch_size").text(), "command line: batch_size");
  EXPECT_EQ(with({}).places.at("job.batch_size").text(), "job.yaml:4:15: job.batch_size");
}

TEST(Override, NullRemovesAKey) {
  EXPECT_FALSE(with({"data.validation=null"}).data.validation);
  EXPECT_FALSE(with({"data.validation=null"}).places.contains("job.data.validation"));
  EXPECT_EQ(with({"optimizer.sgd.momentum=null"}).optimizer.attributes.number("momentum"), 0);
  EXPECT_FALSE(with({"early_stop=null"}).early_stop) << "what is not there needs no removal";
  EXPECT_EQ(with({"data.validation=null", "data.validation.fraction=0.2"}).data.validation_fraction, 0.2);
  EXPECT_EQ(
      problems_with({"model=null"}),
      "job.yaml:2:3: job.model: expected one of gpt, lenet, llama, mlp, resnet, vit, autoencoder, mobilenet, lstm, "
      "unet, bert, layers, found nothing: this key is required");
  EXPECT_EQ(problems_with({"batch_sise=null"}),
            "command line: batch_sise: expected a known key, found 'batch_sise'; did you mean 'batch_size'?");
}

TEST(Override, WordsAreText) {
  EXPECT_EQ(with({"name=on"}).name, "on") << "Helm reads no command line";
  for (const char* text : {"010", "0x1f", "1_000", "NO", "12:30", "2024-01-01"}) {
    EXPECT_EQ(with({std::string("name=") + text}).name, text);
  }
  EXPECT_EQ(problems_with({"seed=010"}), "command line: seed: expected an integer of at least 0, found '010'");
  EXPECT_EQ(with({"name='12'"}).name, "12");
  EXPECT_EQ(problems_with({"name=12"}),
            "command line: name: expected text, found 12; if it is text, quote it twice: '\"12\"'");
  EXPECT_EQ(problems_with({"name=true"}),
            "command line: name: expected text, found true; if it is text, quote it twice: '\"true\"'");
}

TEST(Override, OfTheDefaultJob) {
  const JobFile job = default_job({"steps=5", "data.train.digits=640", "micro_batches=4"}, test_catalogue());
  EXPECT_EQ(job.steps, 5);
  EXPECT_EQ(job.data.train.count, 640);
  EXPECT_EQ(job.micro_batches, 4);
}

}  // namespace
}  // namespace lockstep::config
