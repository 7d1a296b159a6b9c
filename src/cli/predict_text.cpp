// Text that continues a prompt. The whole window is recomputed for each token; since the model is causal, the content
// to the right of the last token does not matter.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "cli/predict.hpp"
#include "lockstep/data_set.hpp"
#include "lockstep/error.hpp"
#include "lockstep/random.hpp"

namespace lockstep::cli {

namespace {

/// Between text and tokens, in one of three ways: characters (DataSetInfo::token_text), bytes, or, if the data set has
/// neither, the token numbers separated by spaces.
class TokenCodec {
 public:
  explicit TokenCodec(const DataSetInfo& info);

  /// Throws Error(usage), naming the first character or number that is not a token.
  [[nodiscard]] std::vector<std::int32_t> encode(const std::string& text) const;
  /// What `token` appends to a text that ends with `text`: numbers are separated by one space.
  [[nodiscard]] std::string decode_after(const std::string& text, std::int32_t token) const;

 private:
  enum class Kind { characters, bytes, numbers };
  [[nodiscard]] std::vector<std::int32_t> encode_characters(const std::string& text) const;
  [[nodiscard]] std::vector<std::int32_t> encode_numbers(const std::string& text) const;

  Kind kind_;
  std::int64_t vocabulary_;
  std::vector<std::string> text_;
  std::map<std::string, std::int32_t> number_;
};

// Length in bytes of the UTF-8 character that starts with `c`; 1 if no character can.
std::size_t character_bytes(unsigned char c) {
  if (c >= 0xF0) return 4;
  if (c >= 0xE0) return 3;
  return c >= 0xC0 ? 2 : 1;
}

TokenCodec::TokenCodec(const DataSetInfo& info)
    : kind_(Kind::numbers), vocabulary_(info.vocabulary), text_(info.token_text) {
  if (!text_.empty()) {
    kind_ = Kind::characters;
  } else if (info.format == "text, bytes") {
    kind_ = Kind::bytes;
  }
  for (std::size_t i = 0; i < text_.size(); ++i) number_[text_[i]] = static_cast<std::int32_t>(i);
}

std::vector<std::int32_t> TokenCodec::encode(const std::string& text) const {
  if (kind_ == Kind::characters) return encode_characters(text);
  if (kind_ == Kind::numbers) return encode_numbers(text);
  std::vector<std::int32_t> tokens;
  for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
  return tokens;
}

std::vector<std::int32_t> TokenCodec::encode_characters(const std::string& text) const {
  std::vector<std::int32_t> tokens;
  for (std::size_t at = 0; at < text.size();) {
    const std::string character = text.substr(at, character_bytes(static_cast<unsigned char>(text[at])));
    const auto found = number_.find(character);
    if (found == number_.end()) {
      throw Error(ExitCode::usage, fmt::format("--prompt: expected characters of the training text ({} of them), found "
                                               "'{}', which is not there; remove it",
                                               text_.size(), character));
    }
    tokens.push_back(found->second);
    at += character.size();
  }
  return tokens;
}

std::vector<std::int32_t> TokenCodec::encode_numbers(const std::string& text) const {
  std::vector<std::int32_t> tokens;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    std::int32_t token = -1;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), token);
    const bool below = vocabulary_ == 0 || token < vocabulary_;
    if (error != std::errc{} || end != word.data() + word.size() || token < 0 || !below) {
      throw Error(ExitCode::usage, fmt::format("--prompt: the data are token files without text: expected numbers of "
                                               "tokens below {}, found '{}'",
                                               vocabulary_ == 0 ? 65536 : vocabulary_, word));
    }
    tokens.push_back(token);
  }
  return tokens;
}

std::string TokenCodec::decode_after(const std::string& text, std::int32_t token) const {
  if (kind_ == Kind::numbers) {
    const bool apart = text.empty() || std::isspace(static_cast<unsigned char>(text.back())) != 0;
    return fmt::format("{}{}", apart ? "" : " ", token);
  }
  if (kind_ == Kind::bytes) return std::string(1, static_cast<char>(token));
  const auto index = static_cast<std::size_t>(token);
  return index < text_.size() ? text_[index] : "?";
}

/// A data set of one sample: a window of tokens.
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

  /// Fills the window from the left with as many of the last tokens of `all` as fit; returns the last one's position.
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
