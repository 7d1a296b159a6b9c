// A zoo model written out as a list of layers is the same model: to the same bits.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "train/small_run.hpp"

namespace lockstep {

namespace {

std::string trained(const std::string& model, const std::string& corpus) {
  const Registries registries = Registries::built_in();
  const JobFile job = config::load_text(
      fmt::format(
          "job:\n  model: {}\n  data: {{train: {{text: {{path: {}, context: 12}}}}}}\n  batch_size: 8\n"
          "  micro_batches: 4\n  steps: 3\n  optimizer: {{adamw: {{weight_decay: 0.1}}}}\n  learning_rate: 0.01\n"
          "  clip_norm: 1\n  checkpoint: never\n",
          model, corpus),
      "job.yaml", {}, train::catalogue_of(registries), true);
  return train_job(job, *make_single_communicator(), registries).parameters_sha256;
}

}  // namespace

TEST(Lists, ATransformerIsAListOfLayers) {
  const Folder folder;
  const std::string corpus = folder.path() + "/corpus.txt";
  std::ofstream file(corpus);
  for (int i = 0; i < 40; ++i) file << "to be or not to be, that is the question. ";
  file.close();
  const std::string zoo = "{gpt: {layers: 1, heads: 2, width: 16, bias: true}}";
  const std::string list = fmt::format(
      R"(
    layers:
      - {{embedding: {{vocabulary: 15, width: 16}}, name: tokens}}
      - {{position_embedding: {{}}, name: positions}}
      - {{layer_norm: {{}}, name: block1.norm1}}
      - {{linear: {{features: 48, std: 0.02}}, name: block1.qkv}}
      - {{attention: {{heads: 2, causal: true}}, name: block1.attention}}
      - {{linear: {{features: 16, std: {0:.17g}}}, name: block1.projection}}
      - {{add: {{inputs: [positions, previous]}}, name: block1.add1}}
      - {{layer_norm: {{}}, name: block1.norm2}}
      - {{linear: {{features: 64, std: 0.02}}, name: block1.expand}}
      - {{gelu: {{}}, name: block1.gelu}}
      - {{linear: {{features: 16, std: {0:.17g}}}, name: block1.contract}}
      - {{add: {{inputs: [block1.add1, previous]}}, name: block1.add2}}
      - {{layer_norm: {{}}, name: norm}}
      - {{linear: {{features: 15, tied: tokens}}, name: head}})",
      0.02 / std::sqrt(2.0));
  const std::string hash = trained(zoo, corpus);
  EXPECT_EQ(trained(list, corpus), hash);
  EXPECT_NE(trained("{gpt: {layers: 1, heads: 1, width: 16, bias: true}}", corpus), hash);
}

}  // namespace lockstep
