#include "tools/formats/huggingface_job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "lockstep/error.hpp"
#include "run/checkpoint/transformers_config.hpp"
#include "tools/formats/image_steps.hpp"
#include "tools/formats/json_object.hpp"

namespace lockstep::formats {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// transformers' settings, whose absence means its defaults.
class Config {
 public:
  Config(Json json, std::string path) : json_(std::move(json)), path_(std::move(path)) {}

  std::int64_t integer(const std::string& key, std::int64_t usual) const {
    const Json value = get(key);
    if (value.is_null()) return usual;
    if (value.is_number_integer() && value.get<std::int64_t>() > 0) return value.get<std::int64_t>();
    refuse(key, "a whole number above 0", value);
  }
  double number(const std::string& key, double usual) const {
    const Json value = get(key);
    if (value.is_null()) return usual;
    if (value.is_number()) return value.get<double>();
    refuse(key, "a number", value);
  }
  std::string text(const std::string& key, const std::string& usual) const {
    const Json value = get(key);
    if (value.is_null()) return usual;
    if (value.is_string()) return value.get<std::string>();
    refuse(key, "a text", value);
  }
  bool is(const std::string& key, bool usual) const {
    const Json value = get(key);
    return value.is_boolean() ? value.get<bool>() : usual;
  }
  /// What lockstep's model has, too; absence means it.
  void require(const std::string& key, const Json& wanted) const {
    const Json value = get(key);
    if (!value.is_null() && value != wanted) refuse(key, wanted.dump(), value);
  }
  Json get(const std::string& key) const { return json_.value(key, Json()); }
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

/// As YAML reads it, too.
std::string in_one_line(const Json& json) {
  std::string text;
  for (const Json& value : json) text += fmt::format("{}{}", text.empty() ? "" : ", ", value.dump());
  return "[" + text + "]";
}

using Settings = std::vector<std::pair<std::string, std::string>>;

std::string map_text(const std::string& model, const Settings& settings) {
  std::string text;
  for (const auto& [key, value] : settings) text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", key, value);
  return fmt::format("{}: {{{}}}", model, text);
}

/// `tokenizer`: of the folder; empty: it has none.
std::string text_source(std::int64_t context, const std::string& tokenizer, const std::string& more = "") {
  if (tokenizer.empty()) {
    return fmt::format(
        "    # no tokenizer there: your text as the model's own numbers of tokens, uint16\n"
        "    train: {{tokens: {{path: tokens.bin, context: {}}}}}\n",
        context);
  }
  return fmt::format("    train: {{text: {{path: text.txt, tokenizer: {}, context: {}{}}}}}  # your text\n", tokenizer,
                     context, more);
}

/// What the model's outputs are called, in their order; empty: the names say nothing (LABEL_0, ...), or there are none.
std::vector<std::string> labels_of(const Config& c) {
  const Json labels = c.get("id2label");
  auto names = checkpoint::label_names(labels.dump(-1, ' ', true, Json::error_handler_t::replace));
  if (!names) c.refuse("id2label", fmt::format("{} different names, of the numbers from 0 on", labels.size()), labels);
  return std::move(*names);
}

/// The order of the model's outputs, whatever the data's names sort like.
std::string classes_setting(const Config& c) {
  const auto names = labels_of(c);
  return names.empty() ? "" : fmt::format(", classes: {}", in_one_line(Json(names)));
}

/// What is to be said of it.
std::string classes_note(const Config& c) {
  return labels_of(c).empty()
             ? "    # id2label names no classes: output 0 is the first of your data's names, and so on\n"
             : "    # classes: the model's outputs in their order, as id2label names them\n";
}

std::int64_t class_count(const Config& c) {
  const Json labels = c.get("id2label");
  const auto count = labels.is_object() ? static_cast<std::int64_t>(labels.size()) : c.integer("num_labels", 2);
  c.require("problem_type", "single_label_classification");
  if (count < 2) c.refuse("id2label", "2 classes or more, as one output is a regression", labels);
  return count;
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

/// The text of a token in a folder's settings: a text, or an object with its `content`.
std::string token_text(const std::optional<Json>& settings, const std::string& key) {
  const Json value = settings ? settings->value(key, Json()) : Json();
  const Json content = value.is_object() ? value.value("content", Json()) : value;
  return content.is_string() ? content.get<std::string>() : "";
}

/// The last line of a file that is this text, counted from 0; -1: none.
std::int64_t line_of(const fs::path& path, const std::string& text) {
  std::ifstream file(path);
  std::int64_t found = -1, at = 0;
  for (std::string line; std::getline(file, line); ++at) {
    if (line == text || line == text + "\r") found = at;
  }
  return found;
}

/// The number of the token that hides others.
std::int64_t mask_token(const fs::path& folder) {
  std::string text;
  for (const char* const file : {"tokenizer_config.json", "special_tokens_map.json"}) {
    if (text.empty()) text = token_text(read_object(folder / file), "mask_token");
  }
  if (text.empty()) text = "[MASK]";
  const auto number = [&](const Json& map) {
    const Json found = map.is_object() ? map.value(text, Json()) : Json();
    return found.is_number_integer() ? found.get<std::int64_t>() : -1;
  };
  const Json whole = read_object(folder / "tokenizer.json").value_or(Json::object());
  for (const Json& added : whole.value("added_tokens", Json::array())) {
    if (added.is_object() && added.value("content", Json()) == text) return added.value("id", std::int64_t{-1});
  }
  std::int64_t found = number(whole.value("model", Json::object()).value("vocab", Json()));
  for (const char* const file : {"added_tokens.json", "vocab.json"}) {
    if (found < 0) found = number(read_object(folder / file).value_or(Json()));
  }
  if (found < 0) found = line_of(folder / "vocab.txt", text);
  if (found >= 0) return found;
  throw Error(ExitCode::data,
              fmt::format("{}: expected a tokenizer with the mask that the model was trained with, found "
                          "none called {}; save the model's own tokenizer there",
                          folder.string(), text));
}

Written bert(const Config& c, const std::string& tokenizer, const std::string& folder) {
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
  if (tokenizer.empty()) {
    throw Error(
        ExitCode::data,
        fmt::format("{}: expected the model's tokenizer, as the numbers of its tokens mean nothing without, found "
                    "none of tokenizer.json, merges.txt and vocab.txt; save it there with its save_pretrained()",
                    folder));
  }
  const Json architectures = c.get("architectures");
  if (architectures == Json::array({"BertForSequenceClassification"})) {
    const double dropout = c.number("hidden_dropout_prob", 0.1);
    if (c.number("classifier_dropout", dropout) != dropout) {
      c.refuse("classifier_dropout", fmt::format("hidden_dropout_prob, {}", dropout), c.get("classifier_dropout"));
    }
    settings.push_back({"classes", std::to_string(class_count(c))});
    return {
        map_text("bert", settings),
        fmt::format("{}    train: {{texts: {{path: texts.csv, tokenizer: {}, context: {}{}}}}}  # your texts and their "
                    "classes\n",
                    classes_note(c), tokenizer, positions, classes_setting(c)),
        "  metrics: accuracy\n"};
  }
  return {map_text("bert", settings),
          text_source(positions, tokenizer, fmt::format(", masked: 0.15, mask_token: {}", mask_token(folder))),
          "  loss: {cross_entropy: {ignored_index: -100}}\n"};
}

Written vit(const Config& c, const std::string& folder, std::vector<std::string>& warnings) {
  c.require("hidden_act", "gelu");
  c.require("qkv_bias", true);
  const std::int64_t size = c.integer("image_size", 224);
  Settings settings = {{"layers", std::to_string(c.integer("num_hidden_layers", 12))},
                       {"heads", std::to_string(c.integer("num_attention_heads", 12))},
                       {"width", std::to_string(c.integer("hidden_size", 768))},
                       {"hidden", std::to_string(c.integer("intermediate_size", 3072))},
                       {"patch", std::to_string(c.integer("patch_size", 16))},
                       {"pool", "token"},
                       {"epsilon", fmt::format("{}", c.number("layer_norm_eps", 1e-12))},
                       {"dropout", fmt::format("{}", c.number("hidden_dropout_prob", 0))},
                       {"classes", std::to_string(class_count(c))}};
  const std::int64_t channels = c.integer("num_channels", 3);
  const std::string data =
      fmt::format("{}    train: {{images: {{path: images{}}}}}  # your images, with {} channel{}\n", classes_note(c),
                  classes_setting(c), channels, channels == 1 ? "" : "s");
  return {map_text("vit", settings), data + image_steps(folder, size, channels, warnings), "  metrics: accuracy\n"};
}

bool has_any(const fs::path& folder, std::initializer_list<const char*> files) {
  return std::any_of(files.begin(), files.end(), [&](const char* file) { return fs::exists(folder / file); });
}

/// A tokenizer that is there, but cannot be read.
void refuse_sentence_piece(const fs::path& folder) {
  for (const char* const file : {"tokenizer.model", "spiece.model", "sentencepiece.bpe.model"}) {
    if (!fs::exists(folder / file)) continue;
    throw Error(
        ExitCode::data,
        fmt::format("{}: expected tokenizer.json in this folder, found {}, a model of SentencePiece or tiktoken, "
                    "which is not read; transformers writes one: "
                    "AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER)",
                    folder.string(), file));
  }
}

}  // namespace

std::string huggingface_job(const std::string& folder, std::vector<std::string>& warnings) {
  const fs::path path = fs::path(folder) / "config.json";
  auto json = read_object(path);
  if (!json) {
    throw Error(ExitCode::data,
                fmt::format("{}: expected a folder of Hugging Face's, found no config.json in it", folder));
  }
  const Config config(std::move(*json), path.string());
  const std::string type = config.text("model_type", "none");
  const auto given = read_object(fs::path(folder) / "tokenizer.json");
  // `--to huggingface` has written it for `tokenizer: characters`.
  const Json::json_pointer kind("/model/type");
  const Json::json_pointer pattern("/pre_tokenizer/pattern/Regex");
  const bool of_characters = given && given->contains(kind) && given->at(kind) == "WordLevel" &&
                             given->contains(pattern) && given->at(pattern) == "[\\s\\S]";
  const bool has_tokenizer = !of_characters && has_any(folder, {"tokenizer.json", "merges.txt", "vocab.txt"});
  if (!given && !has_tokenizer) refuse_sentence_piece(folder);
  const std::string tokenizer = of_characters ? "characters" : has_tokenizer ? Json(folder).dump() : "";
  const std::map<std::string, std::function<Written()>> models = {
      {"gpt2", [&] { return gpt2(config, tokenizer); }},
      {"llama", [&] { return llama(config, tokenizer); }},
      {"bert", [&] { return bert(config, tokenizer, folder); }},
      {"vit", [&] { return vit(config, folder, warnings); }}};
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

}  // namespace lockstep::formats
