// config.json of transformers' GPT2LMHeadModel, LlamaForCausalLM, BertForMaskedLM, BertForSequenceClassification and
// ViTForImageClassification.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>
#include <vector>

#include "lockstep/error.hpp"
#include "lockstep/op.hpp"
#include "tools/formats/exported_model.hpp"
#include "tools/formats/torch_weights.hpp"

namespace lockstep::formats {

namespace {

// What transformers does to a sample before the model: of images preprocessor_config.json, of texts tokenizer.json and
// tokenizer_config.json.

using Json = nlohmann::ordered_json;

std::string file_text(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Json height_and_width(const std::vector<std::int64_t>& size) {
  return {{"height", size.front()}, {"width", size.back()}};
}

/// By channel.
Json of_channels(const std::vector<double>& values, std::int64_t channels, double none) {
  Json all = Json::array();
  for (std::int64_t i = 0; i < channels; ++i) {
    all.push_back(values.empty() ? none : values[values.size() == 1 ? 0 : static_cast<std::size_t>(i)]);
  }
  return all;
}

/// Sets what resizes and crops.
void add_steps(const ExportedModel& model, Json& config) {
  const auto& steps = model.prepare;
  const bool resizes = !steps.empty() && steps.front().name == "resize";
  const bool crops = !steps.empty() && steps.back().name == "center_crop";
  config["do_resize"] = false;
  if (steps.size() != static_cast<std::size_t>(resizes) + crops) {
    config["lockstep_prepare"] = Json::parse(exported_facts(model)).at("prepare");
    return;
  }
  if (resizes) {
    const auto size = steps.front().attributes.integers("size");
    config["do_resize"] = true;
    config["size"] = size.size() == 1 ? Json{{"shortest_edge", size[0]}} : height_and_width(size);
    config["resample"] = 2;                                                       // bilinear
    if (size.size() == 1) config["image_processor_type"] = "CLIPImageProcessor";  // which knows a shortest edge
  }
  if (crops) config["crop_size"] = height_and_width(steps.back().attributes.integers("size"));
  if (crops) config["image_processor_type"] = "CLIPImageProcessor";
  config["do_center_crop"] = crops;
}

Json image_processor(const ExportedModel& model, const Shape& image) {
  Json config = {{"image_processor_type", "ViTImageProcessor"},
                 {"size", height_and_width({image[0], image[1]})},
                 {"do_rescale", true},
                 {"rescale_factor", 1.0 / 255},
                 {"do_normalize", !model.mean.empty()},
                 {"image_mean", of_channels(model.mean, image[2], 0)},
                 {"image_std", of_channels(model.stddev, image[2], 1)},
                 {"do_convert_rgb", false}};
  if (image[2] == 3) config["do_convert_rgb"] = true;
  add_steps(model, config);
  return config;
}

/// A word for each character; one that is not known is an error there, too.
Json tokenizer_of_characters(const std::vector<std::string>& characters) {
  Json vocabulary = Json::object();
  for (std::size_t i = 0; i < characters.size(); ++i) vocabulary[characters[i]] = i;
  return {{"version", "1.0"},
          {"added_tokens", Json::array()},
          {"pre_tokenizer",
           {{"type", "Split"}, {"pattern", {{"Regex", "[\\s\\S]"}}}, {"behavior", "Isolated"}, {"invert", false}}},
          {"decoder", {{"type", "Fuse"}}},
          {"model", {{"type", "WordLevel"}, {"vocab", vocabulary}, {"unk_token", "<unknown>"}}}};
}

/// How byte-level vocabularies write a byte: printable ones of Latin-1 as themselves, others from U+0100 on.
std::string character_of(int byte, int& next) {
  const bool printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
  const int code = printable ? byte : next++;
  if (code < 128) return {static_cast<char>(code)};
  return {static_cast<char>(0xC0 | code >> 6), static_cast<char>(0x80 | (code & 0x3F))};
}

Json tokenizer_of_bytes() {
  Json vocabulary = Json::object();
  const Json level = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", false}, {"use_regex", false}};
  int next = 256;
  for (int byte = 0; byte < 256; ++byte) vocabulary[character_of(byte, next)] = byte;
  return {{"version", "1.0"},
          {"added_tokens", Json::array()},
          {"pre_tokenizer", level},
          {"decoder", level},
          {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", Json::array()}}}};
}

/// Empty: the text of tokens is not known.
std::string tokenizer_of(const ExportedModel& model) {
  if (!model.tokenizer.empty()) {
    Json given = Json::parse(model.tokenizer);
    if (given.contains("added_tokens")) return model.tokenizer;
    given["added_tokens"] = Json::array();  // transformers asks for it
    return file_text(given);
  }
  if (!model.tokens.empty()) return file_text(tokenizer_of_characters(model.tokens));
  const Json data = Json::parse(model.data, nullptr, false);
  const bool bytes = data.is_object() && data.value("format", "").ends_with(", bytes");
  return bytes ? file_text(tokenizer_of_bytes()) : "";
}

/// None for what transformers has no files for, such as tokens whose text is not known. Steps of `prepare` that it
/// cannot do in their order are only named there, so that it refuses images of another size.
std::vector<ExportedFile> huggingface_preparation(const ExportedModel& model) {
  if (model.inputs.empty()) return {};
  const Feature::Kind kind = model.inputs.front().feature.kind;
  const Shape& shape = model.graph->at(model.graph->inputs.front()).spec.shape;
  if (kind == Feature::Kind::image) {
    return {{"preprocessor_config.json", file_text(image_processor(model, {shape.begin() + 1, shape.end()}))}};
  }
  const std::string tokenizer = kind == Feature::Kind::tokens ? tokenizer_of(model) : "";
  if (tokenizer.empty()) return {};
  const Json config = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                       {"model_max_length", shape.at(1)},
                       {"clean_up_tokenization_spaces", false}};
  return {{"tokenizer.json", tokenizer}, {"tokenizer_config.json", file_text(config)}};
}

using Json = nlohmann::ordered_json;

const Node& node_named(const Graph& graph, const std::string& name) {
  const auto found =
      std::find_if(graph.nodes.begin(), graph.nodes.end(), [&](const Node& n) { return n.name == name; });
  LOCKSTEP_CHECK(found != graph.nodes.end(), "a model of the zoo has its nodes");
  return *found;
}

const Shape& parameter_shape(const Graph& graph, const std::string& node) {
  return graph.at(node_named(graph, node).parameters.front()).spec.shape;
}

std::int64_t blocks_of(const Graph& graph) {
  return std::count_if(graph.nodes.begin(), graph.nodes.end(), [](const Node& n) { return n.op->name == "attention"; });
}

Json gpt2_config(const Graph& graph) {
  const Shape& tokens = parameter_shape(graph, "tokens");
  const bool exact = node_named(graph, "block1.gelu").attributes.text("approximate") == "none";
  return {{"architectures", {"GPT2LMHeadModel"}},
          {"model_type", "gpt2"},
          {"vocab_size", tokens[0]},
          {"n_positions", parameter_shape(graph, "positions")[0]},
          {"n_embd", tokens[1]},
          {"n_layer", blocks_of(graph)},
          {"n_head", node_named(graph, "block1.attention").attributes.integer("heads")},
          {"n_inner", parameter_shape(graph, "block1.expand")[0]},
          {"activation_function", exact ? "gelu" : "gelu_new"},
          {"layer_norm_epsilon", node_named(graph, "norm").attributes.number("epsilon")},
          {"resid_pdrop", 0},
          {"embd_pdrop", 0},
          {"attn_pdrop", 0},
          {"bos_token_id", nullptr},
          {"eos_token_id", nullptr},
          {"tie_word_embeddings", true}};
}

Json llama_config(const Graph& graph) {
  const Shape& tokens = parameter_shape(graph, "tokens");
  const Attributes& attention = node_named(graph, "block1.attention").attributes;
  const std::int64_t heads = attention.integer("heads");
  return {{"architectures", {"LlamaForCausalLM"}},
          {"model_type", "llama"},
          {"vocab_size", tokens[0]},
          {"hidden_size", tokens[1]},
          {"intermediate_size", parameter_shape(graph, "block1.gate")[0]},
          {"num_hidden_layers", blocks_of(graph)},
          {"num_attention_heads", heads},
          {"num_key_value_heads", attention.has("kv_heads") ? attention.integer("kv_heads") : heads},
          {"hidden_act", "silu"},
          {"max_position_embeddings", graph.at(graph.inputs.front()).spec.shape[1]},
          {"rms_norm_eps", node_named(graph, "norm").attributes.number("epsilon")},
          {"rope_theta", node_named(graph, "block1.query_rope").attributes.number("base")},
          {"attention_bias", false},
          {"bos_token_id", nullptr},
          {"eos_token_id", nullptr},
          {"tie_word_embeddings", node_named(graph, "head").attributes.has("tied")}};
}

/// What BERT and ViT have in common.
Json encoder_config(const Graph& graph) {
  return {{"hidden_size", parameter_shape(graph, "block1.norm1")[0]},
          {"num_hidden_layers", blocks_of(graph)},
          {"num_attention_heads", node_named(graph, "block1.attention").attributes.integer("heads")},
          {"intermediate_size", parameter_shape(graph, "block1.expand")[0]},
          {"hidden_act", "gelu"},
          {"hidden_dropout_prob", 0},
          {"attention_probs_dropout_prob", 0},
          {"layer_norm_eps", node_named(graph, "block1.norm1").attributes.number("epsilon")}};
}

void add_labels(Json& config, const ExportedModel& model, std::int64_t classes) {
  for (std::int64_t i = 0; i < classes; ++i) {
    const std::size_t at = i;
    const std::string label = at < model.labels.size() ? as_utf8(model.labels[at]) : fmt::format("LABEL_{}", i);
    config["id2label"][std::to_string(i)] = label;
    config["label2id"][label] = i;
  }
}

Json bert_config(const ExportedModel& model) {
  const Graph& graph = *model.graph;
  const bool classes = graph.at(graph.output).spec.shape.size() == 2;
  Json config = {{"architectures", {classes ? "BertForSequenceClassification" : "BertForMaskedLM"}},
                 {"model_type", "bert"},
                 {"vocab_size", parameter_shape(graph, "tokens")[0]},
                 {"max_position_embeddings", parameter_shape(graph, "positions")[0]},
                 {"type_vocab_size", parameter_shape(graph, "types")[0]},
                 {"pad_token_id", nullptr},
                 {"tie_word_embeddings", true}};
  if (classes) add_labels(config, model, parameter_shape(graph, "classifier")[0]);
  config.update(encoder_config(graph));
  return config;
}

Json vit_config(const ExportedModel& model) {
  const Graph& graph = *model.graph;
  const Shape& image = graph.at(graph.inputs.front()).spec.shape;
  if (image[1] != image[2]) {
    throw Error(
        ExitCode::usage,
        fmt::format("--to huggingface: expected square images, which transformers' ViT has, found {}; take --to "
                    "torch or --to onnx",
                    to_string(image)));
  }
  Json config = {{"architectures", {"ViTForImageClassification"}},
                 {"model_type", "vit"},
                 {"image_size", image[1]},
                 {"num_channels", image[3]},
                 {"patch_size", parameter_shape(graph, "patches")[2]},
                 {"qkv_bias", true}};
  add_labels(config, model, parameter_shape(graph, "head")[0]);
  config.update(encoder_config(graph));
  return config;
}

/// transformers' GPT-2 always has biases.
bool lacks_biases(const Graph& graph) {
  return std::none_of(graph.parameters.begin(), graph.parameters.end(),
                      [&](ValueId id) { return graph.at(id).name == "norm.bias"; });
}

}  // namespace

std::vector<ExportedFile> huggingface_files(const ExportedModel& model) {
  const Graph& graph = *model.graph;
  const ForeignModel* const foreign = foreign_model(WeightNames::huggingface, graph);
  const bool gpt2 = foreign != nullptr && foreign->name() == "gpt2";
  if (foreign == nullptr || (gpt2 && lacks_biases(graph))) {
    throw Error(
        ExitCode::usage,
        fmt::format("--to huggingface: expected a model that transformers has, gpt with biases, llama, bert with "
                    "types or vit with pool: token, found {}; take --to torch or --to onnx",
                    gpt2 ? "a gpt without biases" : "another one"));
  }
  const std::string& name = foreign->name();
  Json config = gpt2              ? gpt2_config(graph)
                : name == "llama" ? llama_config(graph)
                : name == "bert"  ? bert_config(model)
                                  : vit_config(model);
  config["torch_dtype"] = "float32";
  std::vector<ExportedFile> files = {{"model.safetensors", torch_weights(model, foreign)},
                                     {"config.json", config.dump(2) + "\n"}};
  for (ExportedFile& file : huggingface_preparation(model)) files.push_back(std::move(file));
  return files;
}

}  // namespace lockstep::formats
