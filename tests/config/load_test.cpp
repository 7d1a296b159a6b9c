// The result of reading a job file: every section once, the short forms, the defaults.
#include <gtest/gtest.h>

#include "config/config.hpp"
#include "config/test_catalogue.hpp"

namespace lockstep::config {
namespace {

JobFile read(const std::string& rest, const std::string& model = "lenet", const std::string& data = "{train: digits}") {
  return load_text("job:\n  model: " + model + "\n  data: " + data + "\n  " + rest + "\n", "my-run.yaml", {},
                   test_catalogue(), false);
}

TEST(Load, SmallestJobHasDefaults) {
  const JobFile job = read("epochs: 1");
  EXPECT_EQ(job.name, "my-run");
  EXPECT_EQ(job.run_directory, "runs/my-run");
  EXPECT_EQ(job.seed, 1u);
  EXPECT_EQ(job.model.zoo, "lenet");
  EXPECT_EQ(job.data.train.count, 12000);
  EXPECT_TRUE(job.data.normalize);
  EXPECT_EQ(job.data.cache, SampleCache::memory);
  EXPECT_EQ(job.batch_size, 64);
  EXPECT_EQ(job.micro_batches, 8);
  EXPECT_EQ(job.epochs, 1);
  EXPECT_EQ(job.steps, 0);
  EXPECT_EQ(job.loss.kind, "cross_entropy");
  EXPECT_EQ(job.loss.attributes.number("label_smoothing"), 0);
  EXPECT_EQ(job.loss.target, "label");
  EXPECT_EQ(job.optimizer.kind, "sgd");
  EXPECT_EQ(job.learning_rate.schedule.kind, "constant");
  EXPECT_EQ(job.clip_norm, 0);
  EXPECT_EQ(job.threads, 0);
  EXPECT_EQ(job.exact, Exactness::required);
  EXPECT_FALSE(job.evaluate.never);
  EXPECT_FALSE(job.early_stop);
  EXPECT_EQ(job.telemetry.prometheus_port, 0);
  EXPECT_EQ(job.telemetry.prometheus_address, "127.0.0.1");
}

TEST(Load, LayersInAllTheirForms) {
  const JobFile job = read("epochs: 1", R"(
    inputs: [image]
    freeze: "stem.*"
    layers:
      - {conv: {filters: 8, kernel: [3, 5], padding: valid}, name: stem, inputs: image}
      - relu
      - dropout
      - {dropout: 0.2}
      - {dropout: {rate: 0.3}}
      - {conv: {filters: 8.0, kernel: 3, padding: 1}}
      - {add: {inputs: [previous, stem]}}
      - {add: {}, inputs: [previous, stem]}
      - {linear: {features: 1e+01}})");
  const auto& layers = job.model.layers;
  ASSERT_EQ(layers.size(), 9u);
  EXPECT_EQ(job.model.zoo, "");
  EXPECT_EQ(job.model.inputs, std::vector<std::string>{"image"});
  EXPECT_EQ(job.model.freeze, std::vector<std::string>{"stem.*"});
  EXPECT_EQ(layers[0].op, "conv");
  EXPECT_EQ(layers[0].name, "stem");
  EXPECT_EQ(layers[0].inputs, std::vector<std::string>{"image"});
  EXPECT_EQ(layers[0].attributes.integers("kernel"), (std::vector<std::int64_t>{3, 5}));
  EXPECT_EQ(layers[0].attributes.text("padding"), "valid");
  EXPECT_EQ(layers[0].place.text(), "my-run.yaml:6:9: job.model.layers[0]");
  EXPECT_EQ(layers[1].op, "relu");
  EXPECT_EQ(layers[2].attributes.number("rate"), 0.5);
  EXPECT_EQ(layers[3].attributes.number("rate"), 0.2);
  EXPECT_EQ(layers[4].attributes.number("rate"), 0.3);
  EXPECT_EQ(layers[5].attributes.integer("filters"), 8);
  EXPECT_EQ(layers[5].attributes.integers("padding"), std::vector<std::int64_t>{1});
  EXPECT_EQ(layers[5].attributes.integers("stride"), std::vector<std::int64_t>{1});
  EXPECT_EQ(layers[6].inputs, (std::vector<std::string>{"previous", "stem"}));
  EXPECT_EQ(layers[7].inputs, layers[6].inputs);
  EXPECT_EQ(layers[8].attributes.integer("features"), 10);
}

TEST(Load, ZooModelsTakeParameters) {
  const Job resnet = read("epochs: 1\n  batch_size: 128", "{resnet: {depth: 32}}");
  EXPECT_EQ(resnet.model.parameters.integer("depth"), 32);
  EXPECT_FALSE(resnet.model.parameters.has("classes"));
  EXPECT_EQ(resnet.micro_batches, 8) << "batch norm wants 16 samples a micro-batch";
  EXPECT_EQ(read("epochs: 1", "{mlp: [32, 16]}").model.parameters.integers("hidden"),
            (std::vector<std::int64_t>{32, 16}));
  EXPECT_EQ(read("epochs: 1", "{gpt: small}").model.parameters.text("size"), "small");
}

TEST(Load, SourcesOfEveryKind) {
  const auto train = [](const std::string& source) {
    return read("epochs: 1", "lenet", "{train: " + source + "}").data.train;
  };
  EXPECT_EQ(train("{digits: 500}").count, 500);
  EXPECT_TRUE(train("{digits: {pairs: true}}").pairs);
  EXPECT_EQ(train("{images: a.tar}").paths, std::vector<std::string>{"a.tar"});
  EXPECT_EQ(train("{images: [a.tar, b.tar]}").paths, (std::vector<std::string>{"a.tar", "b.tar"}));
  EXPECT_EQ(train("{images: {path: a.tar, bad_samples: skip, count: 10}}").bad_samples, BadWhenIndexed::skip);
  EXPECT_EQ(train("{idx: {path: images.gz, labels: labels.gz}}").labels, "labels.gz");
  EXPECT_EQ(train("{cifar: cifar-10.tar.gz}").kind, SourceKind::cifar);
  const SourceOptions text = train("{text: {path: a.txt, tokenizer: bytes, context: 128}}");
  EXPECT_EQ(text.tokenizer, Tokenizer::bytes);
  EXPECT_EQ(text.context, 128);
  EXPECT_EQ(train("{tokens: a.bin}").context, 64);
  EXPECT_EQ(train("{csv: a.csv}").place.path, "job.data.train.csv");
  EXPECT_EQ(train("{packed: a.pack}").count, 0);
}

TEST(Load, TheRestOfData) {
  const DataOptions data = read("epochs: 1", "lenet", R"({train: digits, test: {digits: {first: 20000}},
      validation: {list: held-out.txt}, prepare: [{resize: 32}, {center_crop: [28, 28]}],
      augment: [flip, {crop: 2}, {rotate: {degrees: 10}}], normalize: {mean: [0.5], std: [0.25]},
      cache: {memory: 1.5 GiB}, threads: 3, depth: auto})")
                               .data;
  EXPECT_EQ(data.test->first, 20000);
  EXPECT_FALSE(data.validation);
  EXPECT_EQ(data.validation_list, "held-out.txt");
  EXPECT_EQ(data.prepare.at(0).attributes.integers("size"), std::vector<std::int64_t>{32});
  EXPECT_EQ(data.prepare.at(1).name, "center_crop");
  EXPECT_EQ(data.augment.at(1).attributes.integer("padding"), 2);
  EXPECT_EQ(data.augment.at(2).place.path, "job.data.augment[2]");
  EXPECT_EQ(data.mean, std::vector<double>{0.5});
  EXPECT_EQ(data.stddev, std::vector<double>{0.25});
  EXPECT_EQ(data.cache_bytes, 3 * (std::int64_t{1} << 29));
  EXPECT_EQ(data.threads, 3);
  EXPECT_EQ(data.depth, 0);
  EXPECT_EQ(read("epochs: 1", "lenet", "{train: digits, cache: none, normalize: never}").data.cache, SampleCache::none);
  EXPECT_FALSE(read("epochs: 1", "lenet", "{train: digits, cache: none, normalize: never}").data.normalize);
  EXPECT_EQ(read("epochs: 1", "lenet", "{train: digits, validation: {fraction: 0.1}}").data.validation_fraction, 0.1);
}

TEST(Load, Learning) {
  const JobFile job = read(R"(steps: 1e+03
  loss: {cross_entropy: {label_smoothing: 0.1}, target: kind}
  metrics: [accuracy, top5]
  optimizer: {adamw: {beta2: 0.99}}
  learning_rate: {peak: 0.4, warmup: 100 steps, schedule: {steps: {milestones: [300 steps, 0.5 epochs]}}, reference_batch: 256}
  clip_norm: 1)");
  EXPECT_EQ(job.steps, 1000);
  EXPECT_EQ(job.epochs, 0);
  EXPECT_EQ(job.loss.attributes.number("label_smoothing"), 0.1);
  EXPECT_EQ(job.loss.target, "kind");
  EXPECT_EQ(job.metrics, (std::vector<std::string>{"accuracy", "top5"}));
  EXPECT_EQ(read("epochs: 1\n  metrics: [top2, top10]").metrics, (std::vector<std::string>{"top2", "top10"}));
  EXPECT_EQ(job.optimizer.kind, "adamw");
  EXPECT_EQ(job.optimizer.attributes.number("beta1"), 0.9);
  EXPECT_EQ(job.optimizer.attributes.number("beta2"), 0.99);
  EXPECT_EQ(job.optimizer.attributes.number("weight_decay"), 0.01) << "adamw's own default";
  EXPECT_EQ(job.learning_rate.peak, 0.4);
  EXPECT_EQ(job.learning_rate.warmup.amount, 100);
  EXPECT_FALSE(job.learning_rate.warmup.epochs);
  const Attributes& schedule = job.learning_rate.schedule.attributes;
  EXPECT_EQ(schedule.spans("milestones"), (std::vector<Span>{{300, false}, {0.5, true}}));
  EXPECT_EQ(schedule.number("factor"), 0.1);
  EXPECT_EQ(job.learning_rate.reference_batch, 256);
  EXPECT_EQ(job.clip_norm, 1);
  EXPECT_EQ(read("epochs: 1\n  learning_rate: 0.3").learning_rate.peak, 0.3);
  EXPECT_EQ(read("epochs: 1\n  optimizer: adam").optimizer.attributes.number("weight_decay"), 0);
  const auto groups = read(
                          "epochs: 1\n  optimizer: {adam: {}, groups: [{match: head.*, rate: 10}, {match: [a, b], "
                          "weight_decay: 0, freeze_until: "
                          "1.5 epochs}]}")
                          .optimizer.groups;
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].match, std::vector<std::string>{"head.*"});
  EXPECT_EQ(groups[0].rate, 10);
  EXPECT_FALSE(groups[0].weight_decay);
  EXPECT_EQ(groups[1].match, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(groups[1].rate, 1);
  EXPECT_EQ(groups[1].weight_decay, 0);
  EXPECT_EQ(groups[0].freeze_until, (Span{0, false}));
  EXPECT_EQ(groups[1].freeze_until, (Span{1.5, true}));
}

TEST(Load, Running) {
  const JobFile job = read(R"(epochs: 0.5
  seed: 9007199254740991
  evaluate: {every: 200 steps}
  early_stop: {metric: loss}
  initialize: {from: w.safetensors, only: "head.*", names: huggingface, map: {head.*: fc.*}}
  checkpoint: {every: 2 epochs, keep: 1, best: loss}
  telemetry: {prometheus: {address: "::1", linger: 2}, tensorboard: true, every: 50 steps}
  balance: {weights: {A100: 2, T4: 1}}
  parallel: {parts: 4, in_flight: 2, sharding: none}
  timeout: 2.5
  bucket_bytes: 64 KiB
  run_directory: out/here)",
                           "lenet", "{train: digits, validation: {fraction: 0.1}}");
  EXPECT_EQ(job.seed, 9007199254740991u);
  EXPECT_EQ(job.evaluate.every.amount, 200);
  EXPECT_EQ(job.early_stop->patience, 5);
  EXPECT_EQ(job.initialize->only, std::vector<std::string>{"head.*"});
  EXPECT_EQ(job.initialize->names, WeightNames::huggingface);
  EXPECT_EQ(job.initialize->map, (std::map<std::string, std::string>{{"head.*", "fc.*"}}));
  EXPECT_EQ(job.checkpoint.keep, 1);
  EXPECT_EQ(job.checkpoint.best, "loss");
  EXPECT_EQ(job.telemetry.prometheus_port, 9840);
  EXPECT_EQ(job.telemetry.prometheus_address, "::1");
  EXPECT_EQ(job.telemetry.linger_seconds, 2);
  EXPECT_TRUE(job.telemetry.tensorboard.enabled);
  EXPECT_TRUE(job.telemetry.tensorboard.images);
  EXPECT_EQ(job.telemetry.every, (Span{50, false}));
  EXPECT_EQ(job.balance.weights.at("A100"), 2);
  EXPECT_EQ(job.parallel.parts, 4);
  EXPECT_EQ(job.parallel.in_flight, 2);
  EXPECT_EQ(job.parallel.place.text(), "my-run.yaml:12:21: job.parallel.parts");
  EXPECT_EQ(job.timeout_seconds, 2.5);
  EXPECT_EQ(job.bucket_bytes, 65536);
  EXPECT_EQ(job.run_directory, "out/here");
  EXPECT_TRUE(read("epochs: 1\n  evaluate: never\n  checkpoint: never").checkpoint.never);
  EXPECT_EQ(read("epochs: 1\n  initialize: w.safetensors").initialize->from, "w.safetensors");
  EXPECT_FALSE(read("epochs: 1").telemetry.tensorboard.enabled);
  EXPECT_EQ(read("epochs: 1").telemetry.every, std::nullopt);
  EXPECT_FALSE(read("epochs: 1\n  telemetry: {tensorboard: false}").telemetry.tensorboard.enabled);
  const auto board = read("epochs: 1\n  telemetry: {tensorboard: {histograms: 0 steps}}").telemetry.tensorboard;
  EXPECT_TRUE(board.enabled);
  EXPECT_EQ(board.histograms.amount, 0);
}

TEST(Load, Parts) {
  EXPECT_EQ(read("epochs: 1").parallel.parts, 1);
  EXPECT_EQ(read("epochs: 1").parallel.in_flight, 0);
  EXPECT_EQ(read("epochs: 1\n  parallel: {in_flight: auto}").parallel.in_flight, 0);
  EXPECT_TRUE(read("epochs: 1\n  parallel: {parts: {branches: auto}}").parallel.branches);
  const ParallelOptions cut = read("epochs: 1\n  parallel: {parts: [{until: block6, ranks: 2}, {ranks: 3}]}").parallel;
  ASSERT_EQ(cut.cuts.size(), 2u);
  EXPECT_EQ(cut.cuts[0].until, "block6");
  EXPECT_EQ(cut.cuts[0].ranks, 2);
  EXPECT_EQ(cut.cuts[0].place.text(), "my-run.yaml:5:22: job.parallel.parts[0]");
  EXPECT_EQ(cut.cuts[1].until, "");
  EXPECT_EQ(cut.cuts[1].ranks, 3);
  const auto layers = read("epochs: 1", "{layers: [{flatten: {}, part: body}, {linear: {features: 3}}]}").model.layers;
  EXPECT_EQ(layers.at(0).part, "body");
  EXPECT_EQ(layers.at(1).part, "");
}

TEST(Load, AliasesAreCopies) {
  const JobFile job = load_text("global: {steps: &n 7}\njob: {model: lenet, data: {train: digits}, steps: *n}\n",
                                "job.yaml", {}, test_catalogue(), false);
  EXPECT_EQ(job.steps, 7);
}

TEST(Load, SpansAreWrittenAsTheyCanBeRead) {
  const auto evaluate_every = [](const std::string& every) {
    const JobFile job = read("epochs: 1\n  evaluate: {every: " + every + "}");
    return load_text(canonical(job, test_catalogue()).text, "my-run.yaml", {}, test_catalogue(), false)
        .evaluate.every.amount;
  };
  EXPECT_EQ(evaluate_every("1.5 epochs"), 1.5);
  EXPECT_EQ(evaluate_every("0.0000001 epochs"), 1e-7);
  EXPECT_EQ(evaluate_every("9007199254740991 steps"), 9007199254740991);
  EXPECT_THROW((void)evaluate_every("9007199254740992 steps"), Problems);
  EXPECT_THROW((void)evaluate_every(std::string(400, '9') + " epochs"), Problems);
}

TEST(Load, TextThatIsNoUtf8IsRefused) {
  const auto message = [](const std::string& name, const std::vector<std::string>& overrides) {
    try {
      (void)load_text("job: {model: lenet, data: {train: digits}, epochs: 1, name: " + name + "}\n", "job.yaml",
                      overrides, test_catalogue(), false);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::configuration);
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_EQ(message("caf\xe9", {}),
            "job.yaml:1:61: job.name: expected text in UTF-8, found another encoding; write it in UTF-8");
  EXPECT_EQ(message("cafe", {"name=caf\xe9"}),
            "command line: name: expected text in UTF-8, found another encoding; write it in UTF-8");
  EXPECT_EQ(message("cafe", {"balance.weights.caf\xe9=1"}),
            "command line: balance.weights.caf\xe9: expected text in UTF-8, found another encoding; write it in UTF-8");
  EXPECT_EQ(message("caf\u00e9", {}), "no error");
}

TEST(Load, WorldSizeIsHeldAgainstMicroBatches) {
  const auto error = [](const std::string& parallel, int ranks) -> std::string {
    try {
      check_world_size(read("epochs: 1\n  micro_batches: 8" + parallel), ranks);
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ExitCode::configuration);
      return e.what();
    }
    return "no error";
  };
  EXPECT_EQ(error("", 8), "no error");
  EXPECT_EQ(error("", 9),
            "my-run.yaml:5:18: job.micro_batches: expected at least as many micro-batches as ranks, found 8 "
            "micro-batches and 9 ranks; start "
            "at most 8 ranks, or set micro_batches to a divisor of batch_size 64 that is 9 or more");
  EXPECT_EQ(error("\n  parallel: {parts: 2}", 16), "no error");
  EXPECT_EQ(
      error("\n  parallel: {parts: [{until: conv1}, {}]}", 17),
      "my-run.yaml:5:18: job.micro_batches: expected at least as many micro-batches as ranks of a part, found 8 "
      "micro-batches, 2 parts "
      "and 17 ranks; start at most 16 ranks, or set micro_batches to a divisor of batch_size 64 that is 9 or more");
  EXPECT_EQ(error("\n  parallel: {parts: {branches: auto}}", 17), "no error") << "the graph knows how many";
}

TEST(Load, AnOptimizerHasARateOfItsOwn) {
  EXPECT_EQ(read("epochs: 1").learning_rate.peak, 0.01);
  EXPECT_EQ(read("epochs: 1\n  optimizer: adam").learning_rate.peak, 0.001);
  EXPECT_EQ(read("epochs: 1\n  optimizer: adam\n  learning_rate: {warmup: 5 steps}").learning_rate.peak, 0.001);
  EXPECT_EQ(read("epochs: 1\n  optimizer: adam\n  learning_rate: auto").learning_rate.peak, 0.001);
  EXPECT_EQ(read("epochs: 1\n  optimizer: adam\n  learning_rate: 0.02").learning_rate.peak, 0.02);
  try {
    (void)read("epochs: 1\n  optimizer: adam\n  learning_rate: {schedule: {cosine: {final: 0.005}}}");
    ADD_FAILURE() << "accepted";
  } catch (const Problems& problems) {
    EXPECT_EQ(std::string(problems.what()),
              "my-run.yaml:6:29: job.learning_rate.schedule: expected a final rate of at most the peak, 0.001, found "
              "0.005");
  }
}

}  // namespace
TEST(Completed, ChecksAJobOfAProgram) {
  Job job = read("epochs: 1");
  job.micro_batches = 0;
  EXPECT_EQ(completed(job, test_catalogue()).micro_batches, read("epochs: 1").micro_batches);
  job.batch_size = 0;
  job.learning_rate.peak = -1;
  try {
    (void)completed(job, test_catalogue());
    FAIL();
  } catch (const Problems& problems) {
    EXPECT_STREQ(problems.what(),
                 "job.batch_size: expected an integer of at least 1, found 0\n"
                 "job.learning_rate.peak: expected a number above 0 or 'auto', found -1.0");
  }
}

TEST(Completed, KeepsThePlacesOfAFile) {
  JobFile job = read("epochs: 1");
  const Place written = job.place_of("job.epochs");
  EXPECT_GT(written.line, 0);
  EXPECT_EQ(completed(job, test_catalogue()).place_of("job.epochs").text(), written.text());
  job.epochs = -1;
  try {
    (void)completed(job, test_catalogue());
    FAIL();
  } catch (const Problems& problems) {
    EXPECT_EQ(problems.what(), written.text() + ": expected a number above 0, found -1.0");
  }
}

}  // namespace lockstep::config
