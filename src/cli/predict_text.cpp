// Text that goes on from a prompt. The whole window is computed again for each token; since the model is causal,
// what stands to the right of the last token does not matter.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/predict.hpp"
#include "cli/token_codec.hpp"
#include "lockstep/error.hpp"
#include "lockstep/random.hpp"

namespace lockstep::cli {

namespace {

/// One sample: a window of tokens.
class Window final : public DataSet {
 public:
  explicit Window(const Feature& tokens) : tokens_(tokens.spec) {
    info_.features = {tokens};
    std::fill(tokens_.as<std::int32_t>().begin(), tokens_.as<std::int32_t>().end(), 0);
  }
  [[nodiscard]] const DataSetInfo& info() const override { return info_; }
  [[nodiscard]] std::int64_t size() const override { return 1; }
  void read(std::int64_t /*id*/, Sample& out) const override {
    out.clear();
    out.push_back({info_.features[0].name, Tensor(tokens_.spec())});
    std::copy_n(tokens_.bytes(), tokens_.spec().bytes(), out[0].tensor.bytes());
  }

  /// The last of `all` that fit, from the left; returns the position of the last one.
  std::int64_t show(const std::vector<std::int32_t>& all) {
    const auto window = tokens_.as<std::int32_t>();
    const std::size_t count = std::min(all.size(), window.size());
    std::copy(all.end() - static_cast<std::ptrdiff_t>(count), all.end(), window.begin());
    return static_cast<std::int64_t>(count) - 1;
  }

 private:
  DataSetInfo info_;
  Tensor tokens_;
};

std::int32_t draw(std::span<const float> scores, const PredictOptions& options, RandomStream& random) {
  if (options.temperature == 0) {
    return static_cast<std::int32_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
  }
  const auto weights = probabilities(scores, options.temperature);
  const auto candidates = largest(weights, options.top_k > 0 ? options.top_k : static_cast<int>(scores.size()));
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

void predict_text(train::LoadedModel& model, const PredictOptions& options) {
  if (!options.files.empty()) {
    throw Error(ExitCode::usage,
                fmt::format("predict: this job trains on text: expected --prompt TEXT, found the file '{}'",
                            options.files.front()));
  }
  require_causal_text_model(model.graph());
  const TokenCodec codec(model.data());
  auto tokens = prompt_tokens(codec, options);
  const auto vocabulary = static_cast<std::size_t>(model.prediction_shape()[1]);
  Window window(model.inputs()[0]);
  RandomStream random(mix(options.seed, hash_name("predict")), 0);
  std::string text = options.prompt;
  if (!options.json) fmt::print("{}", text);
  for (std::int64_t i = 0; i < options.tokens; ++i) {
    const std::int64_t last = window.show(tokens);
    std::int32_t next = 0;
    model.predict(window, [&](std::int64_t /*id*/, std::span<const float> prediction) {
      next = draw(prediction.subspan(static_cast<std::size_t>(last) * vocabulary, vocabulary), options, random);
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
}

}  // namespace lockstep::cli
