// config.json of transformers' GPT2LMHeadModel, LlamaForCausalLM, BertForMaskedLM, BertForSequenceClassification and
// ViTForImageClassification.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lockstep/error.hpp"
#include "lockstep/op.hpp"
#include "tools/formats/huggingface_preparation.hpp"
#include "tools/formats/torch_weights.hpp"

namespace lockstep::formats {

namespace {

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
