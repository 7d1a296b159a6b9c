#include "exchange/huggingface_job.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "core/untrusted.hpp"
#include "core/whole_file.hpp"
#include "lockstep/error.hpp"

namespace lockstep::exchange {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// A file's JSON object; none if there is no file.
std::optional<Json> read_object(const fs::path& path) {
  if (!fs::exists(path)) return std::nullopt;
  const auto text = read_whole_file(path.string());
  Json json = text && !nests_too_deep(*text) ? Json::parse(*text, nullptr, false) : Json();
  if (!json.is_object()) throw Error(ExitCode::data, fmt::format("{}: expected a JSON object", path.string()));
  return json;
}

/// transformers' settings, whose absence means its defaults.
class Config {
 public:
  Config(Json json, std::string path) : json_(std::move(json)), path_(std::move(path)) {}

  [[nodiscard]] std::int64_t integer(const std::string& key, std::int64_t usual) const {
    const Json value = get(key);
    if (value.is_null()) return usual;
    if (value.is_number_integer() && value.get<std::int64_t>() > 0) return value.get<std::int64_t>();
    refuse(key, "a whole number above 0", value);
  }
  [[nodiscard]] double number(const std::string& key, double usual) const {
    const Json value = get(key);
    if (value.is_null()) return usual;
    if (value.is_number()) return value.get<double>();
    refuse(key, "a number", value);
  }
  [[nodiscard]] std::string text(const std::string& key, const std::string& usual) const {
    const Json value = get(key);
    if (value.is_null()) return usual;
    if (value.is_string()) return value.get<std::string>();
    refuse(key, "a text", value);
  }
  [[nodiscard]] bool is(const std::string& key, bool usual) const {
    const Json value = get(key);
    return value.is_boolean() ? value.get<bool>() : usual;
  }
  /// What lockstep's model has, too; absence means it.
  void require(const std::string& key, const Json& wanted) const {
    const Json value = get(key);
    if (!value.is_null() && value != wanted) refuse(key, wanted.dump(), value);
  }
  [[nodiscard]] Json get(const std::string& key) const { return json_.value(key, Json()); }
  [[noreturn]] void refuse(const std::string& key, const std::string& expected, const Json& found) const {
    throw Error(ExitCode::data, fmt::format("{}: {}: expected {}, which lockstep's model has, found {}", path_, key,
                                            expected, found.dump(-1, ' ', true, Json::error_handler_t::replace)));
  }

 private:
  Json json_;
  std::string path_;
};

/// What the job file says of a model.
struct Written {
  std::string model;  ///< "gpt: {...}"
  std::string data;   ///< of `data.train` and what else the model needs there, indented
  std::string rest;
};

using Settings = std::vector<std::pair<std::string, std::string>>;

std::string map_text(const std::string& model, const Settings& settings) {
  std::string text;
  for (const auto& [key, value] : settings) text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", key, value);
  return fmt::format("{}: {{{}}}", model, text);
}

std::string text_source(std::int64_t context, const std::string& tokenizer, const std::string& more = "") {
  return fmt::format("    train: {{text: {{path: text.txt, tokenizer: {}, context: {}{}}}}}  # your text\n", tokenizer,
                     context, more);
}

Written gpt2(const Config& c, const std::string& tokenizer) {
  for (const char* key : {"scale_attn_by_inverse_layer_idx", "add_cross_attention"}) c.require(key, false);
  for (const char* key : {"scale_attn_weights", "tie_word_embeddings"}) c.require(key, true);
  const std::string form = c.text("activation_function", "gelu_new");
  const bool tanh = form == "gelu_new" || form == "gelu_pytorch_tanh";
  if (!tanh && form != "gelu") c.refuse("activation_function", "gelu_new or gelu", form);
  const std::int64_t width = c.integer("n_embd", 768), positions = c.integer("n_positions", 1024);
  Settings settings = {{"layers", std::to_string(c.integer("n_layer", 12))},
                       {"heads", std::to_string(c.integer("n_head", 12))},
                       {"width", std::to_string(width)},
                       {"hidden", std::to_string(c.integer("n_inner", 4 * width))},
                       {"positions", std::to_string(positions)},
                       {"epsilon", fmt::format("{}", c.number("layer_norm_epsilon", 1e-5))},
                       {"gelu", tanh ? "tanh" : "none"},
                       {"dropout", fmt::format("{}", c.number("resid_pdrop", 0.1))},
                       {"vocabulary", std::to_string(c.integer("vocab_size", 50257))}};
  return {map_text("gpt", settings), text_source(positions, tokenizer), ""};
}

Written llama(const Config& c, const std::string& tokenizer) {
  for (const char* key : {"attention_bias", "mlp_bias"}) c.require(key, false);
  c.require("hidden_act", "silu");
  const std::int64_t width = c.integer("hidden_size", 4096), heads = c.integer("num_attention_heads", 32);
  c.require("head_dim", width / heads);
  const Json rope = c.get("rope_parameters"), scaling = c.get("rope_scaling");
  for (const auto& [key, value] : {std::pair{"rope_parameters", rope}, {"rope_scaling", scaling}}) {
    if (!value.is_object()) continue;
    const std::string type = value.value("rope_type", value.value("type", "default"));
    if (type != "default") c.refuse(key, "the default rotary positions", value);
  }
  const double base = rope.is_object() ? rope.value("rope_theta", 10000.0) : c.number("rope_theta", 10000);
  Settings settings = {{"layers", std::to_string(c.integer("num_hidden_layers", 32))},
                       {"heads", std::to_string(heads)},
                       {"kv_heads", std::to_string(c.integer("num_key_value_heads", heads))},
                       {"width", std::to_string(width)},
                       {"hidden", std::to_string(c.integer("intermediate_size", 11008))},
                       {"rope_base", fmt::format("{}", base)},
                       {"epsilon", fmt::format("{}", c.number("rms_norm_eps", 1e-6))},
                       {"tied", c.is("tie_word_embeddings", false) ? "true" : "false"},
                       {"vocabulary", std::to_string(c.integer("vocab_size", 32000))}};
  return {map_text("llama", settings), text_source(c.integer("max_position_embeddings", 2048), tokenizer), ""};
}

Written bert(const Config& c, const std::string& tokenizer) {
  c.require("hidden_act", "gelu");
  c.require("is_decoder", false);
  c.require("tie_word_embeddings", true);
  c.require("position_embedding_type", "absolute");
  const std::int64_t width = c.integer("hidden_size", 768), positions = c.integer("max_position_embeddings", 512);
  Settings settings = {{"layers", std::to_string(c.integer("num_hidden_layers", 12))},
                       {"heads", std::to_string(c.integer("num_attention_heads", 12))},
                       {"width", std::to_string(width)},
                       {"hidden", std::to_string(c.integer("intermediate_size", 3072))},
                       {"positions", std::to_string(positions)},
                       {"types", std::to_string(c.integer("type_vocab_size", 2))},
                       {"epsilon", fmt::format("{}", c.number("layer_norm_eps", 1e-12))},
                       {"dropout", fmt::format("{}", c.number("hidden_dropout_prob", 0.1))},
                       {"vocabulary", std::to_string(c.integer("vocab_size", 30522))}};
  const Json architectures = c.get("architectures");
  if (architectures == Json::array({"BertForSequenceClassification"})) {
    const Json labels = c.get("id2label");
    settings.push_back({"classes", std::to_string(labels.is_object() ? labels.size() : 2)});
    return {map_text("bert", settings),
            fmt::format("    train: {{texts: {{path: texts.csv, tokenizer: {}, context: {}}}}}  # your texts and their "
                        "classes\n",
                        tokenizer, positions),
            "  metrics: accuracy\n"};
  }
  return {map_text("bert", settings), text_source(positions, tokenizer, ", masked: 0.15"),
          "  loss: {cross_entropy: {ignored_index: -100}}\n"};
}

std::string numbers(const Json& list) {
  std::vector<double> values;
  for (const Json& value : list) values.push_back(value.is_number() ? value.get<double>() : 0);
  return fmt::format("[{}]", fmt::join(values, ", "));
}

Written vit(const Config& c, const std::optional<Json>& processor) {
  c.require("hidden_act", "gelu");
  c.require("qkv_bias", true);
  const std::int64_t size = c.integer("image_size", 224);
  const Json labels = c.get("id2label");
  const auto classes = labels.is_object() ? static_cast<std::int64_t>(labels.size()) : c.integer("num_labels", 2);
  Settings settings = {{"layers", std::to_string(c.integer("num_hidden_layers", 12))},
                       {"heads", std::to_string(c.integer("num_attention_heads", 12))},
                       {"width", std::to_string(c.integer("hidden_size", 768))},
                       {"hidden", std::to_string(c.integer("intermediate_size", 3072))},
                       {"patch", std::to_string(c.integer("patch_size", 16))},
                       {"pool", "token"},
                       {"epsilon", fmt::format("{}", c.number("layer_norm_eps", 1e-12))},
                       {"dropout", fmt::format("{}", c.number("hidden_dropout_prob", 0))},
                       {"classes", std::to_string(classes)}};
  std::string data = fmt::format(
      "    train: {{images: images}}  # your images, with {} channel{}\n    prepare: [{{resize: {{size: {}}}}}]\n",
      c.integer("num_channels", 3), c.integer("num_channels", 3) == 1 ? "" : "s", size);
  if (processor && processor->contains("image_mean") && processor->contains("image_std")) {
    data += fmt::format("    normalize: {{mean: {}, std: {}}}\n", numbers(processor->at("image_mean")),
                        numbers(processor->at("image_std")));
  }
  return {map_text("vit", settings), data, "  metrics: accuracy\n"};
}

}  // namespace

std::string huggingface_job(const std::string& folder) {
  const fs::path path = fs::path(folder) / "config.json";
  auto json = read_object(path);
  if (!json) {
    throw Error(ExitCode::data,
                fmt::format("{}: expected a folder of Hugging Face's, found no config.json in it", folder));
  }
  const Config config(std::move(*json), path.string());
  const std::string type = config.text("model_type", "none");
  const bool has_tokenizer =
      fs::exists(fs::path(folder) / "tokenizer.json") || fs::exists(fs::path(folder) / "merges.txt");
  const std::string tokenizer = has_tokenizer ? Json(folder).dump() : "characters";
  const std::map<std::string, std::function<Written()>> models = {
      {"gpt2", [&] { return gpt2(config, tokenizer); }},
      {"llama", [&] { return llama(config, tokenizer); }},
      {"bert", [&] { return bert(config, tokenizer); }},
      {"vit", [&] { return vit(config, read_object(fs::path(folder) / "preprocessor_config.json")); }}};
  const auto found = models.find(type);
  if (found == models.end()) {
    throw Error(ExitCode::data, fmt::format("{}: model_type: expected gpt2, llama, bert or vit, which lockstep has, "
                                            "found '{}'; write the model as `layers:`, and take its weights by "
                                            "initialize.map",
                                            path.string(), type));
  }
  const Written written = found->second();
  const bool has_weights = fs::exists(fs::path(folder) / "model.safetensors") ||
                           fs::exists(fs::path(folder) / "model.safetensors.index.json");
  return fmt::format(
      "# The model of {0}, by `lockstep checkpoint job`. Paths are relative to this file.\n"
      "job:\n  model:\n    {1}\n"
      "  data:\n{2}    validation: {{fraction: 0.1}}\n"
      "{3}{4}"
      "  batch_size: 8\n  epochs: 1\n  optimizer: adamw\n  learning_rate: 0.00005\n",
      path.string(), written.model, written.data, written.rest,
      has_weights ? fmt::format("  initialize: {{from: {}, names: huggingface}}\n", Json(folder).dump())
                  : std::string("  # no weights there: they begin as usual\n"));
}

}  // namespace lockstep::exchange
