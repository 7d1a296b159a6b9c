// Every loss, layer and metric that a job can name is trained on several numbers of ranks and threads, and no bit
// depends on it.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <set>

#include "core/top_k.hpp"
#include "train/every_loss.hpp"
#include "train/outcome_of_ranks.hpp"
#include "train/small_run.hpp"

namespace lockstep {

namespace {

constexpr const char* kImageLayers = R"(
job:
  name: images
  seed: 3
  model:
    layers:
      - {pad: 1}
      - {conv: {filters: 4, kernel: 3, stride: 2, bias: false}}
      - batch_norm
      - {elu: 0.5}
      - {avg_pool: 3}
      - {group_norm: 2}
      - {upsample: {factor: 2, mode: bilinear}}
      - {prelu: {}, name: learned}
      - {conv_transpose: {filters: 4, kernel: 3}}
      - instance_norm
      - {leaky_relu: 0.1}
      - {sub: {inputs: [previous, learned]}}
      - {hardswish: {}, name: hard}
      - {mul: {inputs: [hard, learned]}}
      - {add: {inputs: [previous, hard]}}
      - {max_pool: 2}
      - relu6
      - {upsample: 2}
      - {concat: {inputs: [previous, learned]}, name: all}
      - {global_pool: max, name: largest}
      - {flatten: {}, inputs: all}
      - {dropout: 0.2}
      - {linear: 8}
      - relu
      - {concat: {inputs: [previous, largest]}}
      - {linear: 10}
  data:
    train: {digits: {count: 64}}
    validation: {digits: {count: 21, first: 100000}}
  batch_size: 16
  micro_batches: 8
  steps: 5
  optimizer: {adamw: {weight_decay: 0.01}}
  learning_rate: 0.01
  clip_norm: 0.5
  evaluate: {every: 5 steps}
  checkpoint: never
  bucket_bytes: 1024
)";

/// A digit's rows are tokens.
constexpr const char* kTokenLayers = R"(model={layers: [
  {reshape: [28, 28]}, {linear: 8}, class_token, {position_embedding: {}, name: tokens},
  rms_norm, {linear: 8, name: keys}, {rope: 2, name: turned},
  {attention: {heads: 2, causal: false, inputs: [turned, turned, keys]}},
  {gelu: {}}, {slice: {axis: 1, begin: 1, end: 9}, name: some},
  {softplus: {}, inputs: tokens}, layer_norm, {scale: 0.5}, {sigmoid: {}, name: others},
  {matmul: {transpose: true, inputs: [some, others]}}, softmax, {matmul: {inputs: [previous, others]}}, silu,
  {transpose: [2, 1]}, {max: 1, name: most}, {tanh: {}, inputs: tokens}, {mean: 1},
  {concat: {inputs: [previous, most]}}, {linear: 10}]})";

/// What counts positions, or reads ids.
constexpr const char* kTextLayers = R"(model={layers: [
  {embedding: {vocabulary: 256, width: 8}, inputs: tokens}, {lstm: {features: 4, bidirectional: true}, name: read},
  {reverse: {inputs: [read, length]}}, {gru: 6}, {last: {inputs: [previous, length]}, name: end},
  {mask: {inputs: [read, length]}}, {mean: {axis: 1, inputs: [previous, length]}},
  {concat: {inputs: [previous, end]}}, {linear: 2}]})";

constexpr const char* kTextRows =
    "text,label\n"
    "the pipe leaks,water\nno light,lamp\nwater in my cellar,water\na lamp is out,lamp\nwet,water\ndark street,lamp\n"
    "it drips,water\nthe bulb flickers,lamp\n";

/// A job, and what it is called where it fails.
struct OpRun {
  std::string name, text;
  std::vector<std::string> overrides = {};
};

std::vector<OpRun> runs_of_every_op(const std::string& folder) {
  std::vector<OpRun> runs = {{"images", kImageLayers}, {"tokens", kImageLayers, {kTokenLayers}}};
  std::ofstream(folder + "/texts.csv") << kTextRows;
  const std::string texts = "{texts: {path: " + folder + "/texts.csv, context: 12}}";
  runs.push_back(
      {"texts",
       kImageLayers,
       {kTextLayers, "data={train: " + texts + ", validation: " + texts + "}", "batch_size=8", "micro_batches=4"}});
  const std::string rows = folder + "/rows.csv";
  write_loss_rows(rows);
  for (const LossCase& loss : kEveryLoss) {
    runs.push_back({"loss " + loss.loss, job_of_loss(loss, rows, kLossRows / 2, "", rows)});
  }
  return runs;
}

}  // namespace

TEST(EveryOp, RanksAndThreadsChangeNoBit) {
  const Folder folder;
  for (const OpRun& run : runs_of_every_op(folder.path())) {
    SCOPED_TRACE(run.name);
    const auto outcome = [&run](int ranks, const std::string& way) {
      std::vector<std::string> overrides = run.overrides;
      overrides.push_back(way);
      return run_job(run.text, ranks, overrides);
    };
    const Outcome alone = outcome(1, "threads=1");
    for (const auto& [name, value] : alone.metrics) EXPECT_TRUE(std::isfinite(value)) << name;
    EXPECT_EQ(outcome(1, "threads=3"), alone);
    EXPECT_EQ(outcome(2, "threads=2"), alone);
    EXPECT_EQ(outcome(3, "threads=1"), alone);
    EXPECT_NE(outcome(1, "learning_rate=0.02").parameters, alone.parameters) << "it learns nothing";
  }
}

TEST(EveryOp, IsInOneOfTheseRuns) {
  const Folder folder;
  const Registries registries = Registries::built_in();
  std::set<std::string> named;
  for (const OpRun& run : runs_of_every_op(folder.path())) {
    const JobFile job = config::load_text(run.text, "job.yaml", run.overrides, train::catalogue_of(registries), false);
    named.insert(job.loss.kind);
    for (const std::string& metric : job.metrics) named.insert(top_k_of(metric) > 0 ? kTopKOp : metric);
    for (const LayerOptions& layer : job.model.layers) named.insert(layer.op);
  }
  std::vector<std::string> missing;
  for (const OpDef* const op : registries.ops.all()) {
    const bool has_a_name = op->kind == OpKind::layer || op->kind == OpKind::loss || op->kind == OpKind::metric;
    if (has_a_name && !named.contains(op->name)) missing.push_back(op->name);
  }
  EXPECT_TRUE(missing.empty()) << fmt::format("in none of the runs: {}", fmt::join(missing, ", "));
}

}  // namespace lockstep
