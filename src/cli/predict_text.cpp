// Text that goes on from a prompt. The whole window is computed again for each token; since the model is causal,
// what stands to the right of the last token does not matter.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/predict.hpp"
#include "cli/token_codec.hpp"
#include "exec/executor.hpp"
#include "lockstep/error.hpp"
#include "lockstep/random.hpp"
#include "train/job_graph.hpp"

namespace lockstep::cli {

namespace {

class Window final : public exec::InputSource {
 public:
  explicit Window(std::int64_t length) : tokens_(static_cast<std::size_t>(length), 0) {}

  /// The last of `all` that fit, from the left; returns the position of the last one.
  std::int64_t show(const std::vector<std::int32_t>& all) {
    const std::size_t count = std::min(all.size(), tokens_.size());
    std::copy(all.end() - static_cast<std::ptrdiff_t>(count), all.end(), tokens_.begin());
    return static_cast<std::int64_t>(count) - 1;
  }
  void get(std::uint64_t /*step*/, int /*shard*/, exec::ShardInputs& inputs) override {
    inputs.tensors.assign(1, tokens_.data());
    inputs.valid = 1;
  }
  void release(std::uint64_t /*step*/, int /*shard*/) override {}

 private:
  std::vector<std::int32_t> tokens_;
};

std::int32_t draw(const float* logits, std::int64_t vocabulary, const PredictOptions& options, RandomStream& random) {
  if (options.temperature == 0) {
    return static_cast<std::int32_t>(std::max_element(logits, logits + vocabulary) - logits);
  }
  const auto weights = probabilities(logits, vocabulary, options.temperature);
  const auto candidates = largest(weights, options.top_k > 0 ? options.top_k : static_cast<int>(vocabulary));
  double sum = 0;
  for (const std::size_t i : candidates) sum += weights[i];
  double rest = static_cast<double>(random.unit()) * sum;
  for (const std::size_t i : candidates) {
    rest -= weights[i];
    if (rest < 0) return static_cast<std::int32_t>(i);
  }
  return static_cast<std::int32_t>(candidates.back());
}

void require_causal_text_model(const Graph& graph) {
  for (const Node& node : graph.nodes) {
    if (node.attributes.has("causal") && !node.attributes.boolean("causal")) {
      throw Error(ExitCode::usage,
                  fmt::format("predict: layer '{}' sees the tokens that come after (causal: false), so this "
                              "model cannot generate text",
                              node.name));
    }
  }
  const Shape& shape = graph.at(graph.output).spec.shape;
  if (graph.inputs.size() != 1 || shape.size() != 3) {
    throw Error(ExitCode::usage, fmt::format("predict: expected a model from tokens to [context, vocabulary], found {} "
                                             "inputs and an output of {}",
                                             graph.inputs.size(), to_string(shape)));
  }
}

std::vector<std::int32_t> prompt_tokens(const TokenCodec& codec, const PredictOptions& options) {
  auto tokens = codec.encode(options.prompt);
  if (tokens.empty()) tokens.push_back(0);
  return tokens;
}

}  // namespace

int predict_text(const PredictContext& context) {
  const PredictOptions& options = context.options;
  if (!options.files.empty()) {
    throw Error(ExitCode::usage,
                fmt::format("predict: this job trains on text: expected --prompt TEXT, found the file '{}'",
                            options.files.front()));
  }
  const Graph graph = train::make_prediction_graph(context.job, context.data, context.registries, 1);
  require_causal_text_model(graph);
  const TokenCodec codec(context.data.train->info());
  auto tokens = prompt_tokens(codec, options);
  const SavedModel model = load_saved_model(context.files, graph, context.job, *make_single_communicator());

  exec::WorkerPool pool(1);
  exec::Executor executor(graph, Mode::inference, context.device, pool, 0);
  executor.use({model.parameters, model.states});
  const Shape& shape = graph.at(graph.output).spec.shape;
  Window window(shape[1]);
  RandomStream random(mix(options.seed, hash_name("predict")), 0);
  std::string text = options.prompt;
  if (!options.json) fmt::print("{}", text);
  for (std::int64_t i = 0; i < options.tokens; ++i) {
    const std::int64_t last = window.show(tokens);
    std::int32_t next = 0;
    executor.evaluate(0, {0}, window, [&](const exec::EvaluatedShard& shard) {
      next = draw(shard.prediction + last * shape[2], shape[2], options, random);
    });
    tokens.push_back(next);
    const std::string piece = codec.decode_after(text, next);
    text += piece;
    if (options.json) continue;
    fmt::print("{}", piece);
    std::fflush(stdout);
  }
  if (options.json) {
    const nlohmann::ordered_json line = {{"event", "predict"}, {"prompt", options.prompt}, {"text", text}};
    fmt::print("{}", line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  }
  fmt::print("\n");
  return 0;
}

}  // namespace lockstep::cli
