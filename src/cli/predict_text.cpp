// Text that continues a prompt. A window is filled from the left; since the model is causal, what stands to the right
// of the last token does not matter.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/predict.hpp"
#include "cli/sampling.hpp"
#include "cli/token_codec.hpp"
#include "lockstep/data_set.hpp"
#include "lockstep/error.hpp"
#include "lockstep/random.hpp"
#include "step/exec/cached_model.hpp"

namespace lockstep::cli {

namespace {

/// A data set of one sample: a window of tokens.
class Window final : public DataSet {
 public:
  explicit Window(const Feature& tokens) : tokens_(tokens.spec) {
    info_.features = {tokens};
    std::fill(tokens_.as<std::int32_t>().begin(), tokens_.as<std::int32_t>().end(), 0);
  }
  const DataSetInfo& info() const override { return info_; }
  std::int64_t size() const override { return 1; }
  void read(std::int64_t /*id*/, Sample& out) const override {
    out.clear();
    out.push_back({info_.features[0].name, Tensor(tokens_.spec())});
    std::copy_n(tokens_.bytes(), tokens_.spec().bytes(), out[0].tensor.bytes());
  }

  /// Fills the window from the left with as many of the last tokens of `all` as fit; returns the last one's position.
  std::int64_t show(const std::vector<std::int32_t>& all) {
    const auto window = tokens_.as<std::int32_t>();
    const std::size_t count = std::min(all.size(), window.size());
    std::copy(all.end() - count, all.end(), window.begin());
    return static_cast<std::int64_t>(count) - 1;
  }

 private:
  DataSetInfo info_;
  Tensor tokens_;
};

/// What comes after tokens: from keys and values that are kept, as long as all tokens fit into the context; else, and
/// for models that cannot be computed so, from the whole window, again for each token. Both have the same bits.
class NextToken {
 public:
  NextToken(train::LoadedModel& model, bool cache)
      : model_(model), window_(model.inputs()[0]), vocabulary_(model.prediction_shape()[1]) {
    if (cache) cached_ = model.cached();
  }

  /// By token; valid until the next call. `tokens` are those of the last call, and more.
  std::span<const float> scores(const std::vector<std::int32_t>& tokens) {
    const auto count = std::ssize(tokens);
    if (cached_ && count <= cached_->context()) {
      return cached_->append(std::span(tokens).subspan(cached_->positions()));
    }
    const std::int64_t last = window_.show(tokens);
    model_.predict(window_, [&](std::int64_t /*id*/, std::span<const float> prediction) {
      const auto row = prediction.subspan(last * vocabulary_, vocabulary_);
      scores_.assign(row.begin(), row.end());
    });
    return scores_;
  }

 private:
  train::LoadedModel& model_;
  Window window_;
  std::size_t vocabulary_;
  std::unique_ptr<exec::CachedModel> cached_;
  std::vector<float> scores_;
};

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

std::string prompt_of(const PredictOptions& options) {
  if (options.prompt != "-") return options.prompt;
  return {std::istreambuf_iterator<char>(std::cin), {}};
}

std::vector<std::int32_t> prompt_tokens(const TokenCodec& codec, const std::string& prompt) {
  auto tokens = codec.encode(prompt);
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
  if (!options.print) return;  // one rank generates
  const TokenCodec codec(model.data());
  const std::string prompt = prompt_of(options);
  auto tokens = prompt_tokens(codec, prompt);
  NextToken next(model, options.cache);
  StopText stop(options.stop);
  RandomStream random(mix(options.seed, hash_name("predict")), 0);
  std::string text = prompt;  // all of it, with what is held back or not shown
  std::string shown = prompt;
  const auto show = [&](const std::string& piece) {
    shown += piece;
    if (options.json) return;
    fmt::print("{}", piece);
    std::fflush(stdout);
  };
  if (!options.json) fmt::print("{}", prompt);
  for (std::int64_t i = 0; i < options.tokens && !stop.stopped(); ++i) {
    const auto scores = next.scores(tokens);
    if (!std::all_of(scores.begin(), scores.end(), [](float score) { return std::isfinite(score); })) {
      throw Error(ExitCode::diverged, fmt::format("{}: expected a finite score for each token, found others for token "
                                                  "{} behind the prompt; take another checkpoint",
                                                  model.saved().path, i + 1));
    }
    tokens.push_back(draw_token(scores, options.sampling, random));
    const std::string piece = codec.decode_after(text, tokens.back());
    text += piece;
    show(stop.add(piece));
  }
  show(stop.rest());
  if (options.json) {
    const nlohmann::ordered_json line = {{"event", "predict"}, {"prompt", prompt}, {"text", shown}};
    fmt::print("{}", line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  }
  fmt::print("\n");
}

}  // namespace lockstep::cli
