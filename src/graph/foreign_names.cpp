#include "graph/foreign_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdint>

#include "graph/lora.hpp"

namespace lockstep {

namespace {

using Rules = std::vector<ForeignModel::Rule>;

/// What the marks of a pattern stand for in a name.
struct Match {
  std::vector<std::int64_t> numbers;
  std::string rest;
};

std::optional<Match> match(std::string_view pattern, std::string_view name) {
  Match found;
  for (const char mark : pattern) {
    if (mark == '*') {
      found.rest = name;
      return found;
    }
    if (mark == '#') {
      std::int64_t number = 0;
      const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
      if (error != std::errc()) return std::nullopt;
      found.numbers.push_back(number);
      name.remove_prefix(end - name.data());
      continue;
    }
    if (name.empty() || name.front() != mark) return std::nullopt;
    name.remove_prefix(1);
  }
  return name.empty() ? std::optional(std::move(found)) : std::nullopt;
}

std::string written(std::string_view pattern, const Match& match) {
  std::string name;
  std::size_t next = 0;
  for (const char mark : pattern) {
    if (mark == '#') {
      name += std::to_string(match.numbers.at(next++) - 1);
    } else if (mark == '*') {
      name += torch_name(match.rest);
    } else {
      name += mark;
    }
  }
  return name;
}

/// He and others' blocks count stages and convolutions from 1 there, too, and the blocks of a stage from 0.
Rules resnet_rules() {
  Rules rules = {
      {"stem.conv.*", "conv1.*"},
      {"stem.norm.*", "bn1.*"},
      {"head.*", "fc.*"},
  };
  for (int stage = 1; stage <= 4; ++stage) {
    const std::string ours = fmt::format("stage{}.block#.", stage), theirs = fmt::format("layer{}.#.", stage);
    for (int i = 1; i <= 3; ++i) {
      rules.push_back({fmt::format("{}{}.conv.*", ours, i), fmt::format("{}conv{}.*", theirs, i)});
      rules.push_back({fmt::format("{}{}.norm.*", ours, i), fmt::format("{}bn{}.*", theirs, i)});
    }
    rules.push_back({ours + "shortcut.conv.*", theirs + "downsample.0.*"});
    rules.push_back({ours + "shortcut.norm.*", theirs + "downsample.1.*"});
  }
  return rules;
}

/// A convolution and its norm: in blocks a pair of its own, the last one two modules of the block.
void add_pair(Rules& rules, const std::string& ours, const std::string& conv, const std::string& norm) {
  rules.push_back({ours + ".conv.*", conv + ".*"});
  rules.push_back({ours + ".norm.*", norm + ".*"});
}

Rules mobilenet_rules() {
  Rules rules;
  add_pair(rules, "stem", "features.0.0", "features.0.1");
  constexpr std::array<int, 7> kBlocks{1, 2, 3, 4, 3, 3, 1};
  int number = 1;  // blocks are counted through all stages
  for (std::size_t stage = 0; stage < kBlocks.size(); ++stage) {
    for (int i = 1; i <= kBlocks[stage]; ++i, ++number) {
      const std::string ours = fmt::format("stage{}.block{}.", stage + 1, i);
      const std::string theirs = fmt::format("features.{}.conv.", number);
      const int first = stage == 0 ? 0 : 1;  // the first block does not expand
      if (first == 1) add_pair(rules, ours + "expand", theirs + "0.0", theirs + "0.1");
      add_pair(rules, ours + "depthwise", fmt::format("{}{}.0", theirs, first), fmt::format("{}{}.1", theirs, first));
      add_pair(rules, ours + "project", fmt::format("{}{}", theirs, first + 1), fmt::format("{}{}", theirs, first + 2));
    }
  }
  add_pair(rules, "last", fmt::format("features.{}.0", number), fmt::format("features.{}.1", number));
  rules.push_back({"head.*", "classifier.1.*"});
  return rules;
}

/// Linear layers of GPT-2's blocks are Conv1D there, whose weights are [in, out]. The head is tied.
Rules gpt2_rules() {
  const std::string block = "transformer.h.#.";
  return {{"tokens.weight", "transformer.wte.weight"},
          {"positions.weight", "transformer.wpe.weight"},
          {"block#.norm1.*", block + "ln_1.*"},
          {"block#.qkv.weight", block + "attn.c_attn.weight", true},
          {"block#.qkv.bias", block + "attn.c_attn.bias"},
          {"block#.projection.weight", block + "attn.c_proj.weight", true},
          {"block#.projection.bias", block + "attn.c_proj.bias"},
          {"block#.norm2.*", block + "ln_2.*"},
          {"block#.expand.weight", block + "mlp.c_fc.weight", true},
          {"block#.expand.bias", block + "mlp.c_fc.bias"},
          {"block#.contract.weight", block + "mlp.c_proj.weight", true},
          {"block#.contract.bias", block + "mlp.c_proj.bias"},
          {"norm.*", "transformer.ln_f.*"}};
}

Rules llama_rules() {
  Rules rules = {{"tokens.*", "model.embed_tokens.*"},
                 {"norm.*", "model.norm.*"},
                 {"head.weight", "lm_head.weight", false, "model.embed_tokens.weight"}};
  const std::array<std::array<const char*, 2>, 9> layers{{{"norm1", "input_layernorm"},
                                                          {"query", "self_attn.q_proj"},
                                                          {"key", "self_attn.k_proj"},
                                                          {"value", "self_attn.v_proj"},
                                                          {"projection", "self_attn.o_proj"},
                                                          {"norm2", "post_attention_layernorm"},
                                                          {"gate", "mlp.gate_proj"},
                                                          {"up", "mlp.up_proj"},
                                                          {"down", "mlp.down_proj"}}};
  for (const auto& [ours, theirs] : layers) {
    rules.push_back({fmt::format("block#.{}.*", ours), fmt::format("model.layers.#.{}.*", theirs)});
  }
  return rules;
}

using TheirNames = std::vector<std::array<const char*, 2>>;

/// Layers with all their tensors: ours after `ours`, theirs after `theirs`.
void add_layers(Rules& rules, const std::string& ours, const std::string& theirs, const TheirNames& layers) {
  for (const auto& [our, their] : layers) {
    rules.push_back({fmt::format("{}{}.*", ours, our), fmt::format("{}{}.*", theirs, their)});
  }
}

/// A layer of ours that makes queries, keys and values; three of theirs.
void add_qkv(Rules& rules, const std::string& theirs) {
  for (const char* kind : {"weight", "bias"}) {
    rules.push_back({fmt::format("block#.qkv.{}", kind),
                     fmt::format("{}.@.{}", theirs, kind),
                     false,
                     {},
                     {"query", "key", "value"}});
  }
}

Rules bert_rules() {
  Rules rules;
  add_layers(rules, "", "bert.embeddings.",
             {{"tokens", "word_embeddings"},
              {"positions", "position_embeddings"},
              {"types", "token_type_embeddings"},
              {"embedding.norm", "LayerNorm"}});
  add_qkv(rules, "bert.encoder.layer.#.attention.self");
  add_layers(rules, "block#.", "bert.encoder.layer.#.",
             {{"projection", "attention.output.dense"},
              {"norm1", "attention.output.LayerNorm"},
              {"expand", "intermediate.dense"},
              {"contract", "output.dense"},
              {"norm2", "output.LayerNorm"}});
  add_layers(rules, "transform", "cls.predictions.transform", {{".norm", ".LayerNorm"}, {"", ".dense"}});
  rules.push_back({"head.bias", "cls.predictions.bias"});
  add_layers(rules, "", "", {{"pooler", "bert.pooler.dense"}, {"classifier", "classifier"}});
  return rules;
}

Rules vit_rules() {
  Rules rules = {{"class_token.weight", "vit.embeddings.cls_token", false, {}, {}, 1},
                 {"positions.weight", "vit.embeddings.position_embeddings", false, {}, {}, 1}};
  add_layers(
      rules, "", "",
      {{"patches", "vit.embeddings.patch_embeddings.projection"}, {"norm", "vit.layernorm"}, {"head", "classifier"}});
  add_qkv(rules, "vit.encoder.layer.#.attention.attention");
  add_layers(rules, "block#.", "vit.encoder.layer.#.",
             {{"norm1", "layernorm_before"},
              {"projection", "attention.output.dense"},
              {"norm2", "layernorm_after"},
              {"expand", "intermediate.dense"},
              {"contract", "output.dense"}});
  return rules;
}

}  // namespace

Shape ForeignTensor::shape_there(Shape ours) const {
  if (transposed) std::swap(ours.at(0), ours.at(1));
  if (names.size() > 1 && !alike) ours.at(0) /= std::ssize(names);
  ours.insert(ours.begin(), leading, 1);
  return ours;
}

ForeignModel::ForeignModel(WeightNames library, std::string name, std::vector<Rule> rules, std::string needed)
    : library_(library), name_(std::move(name)), rules_(std::move(rules)), needed_(std::move(needed)) {}

/// PEFT adapts the layers that it finds, so three that make queries, keys and values have an A each.
std::optional<ForeignTensor> ForeignModel::find_adapter(std::string_view ours) const {
  constexpr std::string_view kWeight = ".weight";
  const AdapterName name = adapter_name(ours);
  auto found = find(name.layer + std::string(kWeight));
  if (!found) return std::nullopt;
  for (std::string& part : found->names) {
    part.resize(part.size() - kWeight.size());
    part = fmt::format("{}{}.lora_{}.weight", kPeftPrefix, part, name.is_a ? 'A' : 'B');
  }
  return ForeignTensor{.names = std::move(found->names), .alike = name.is_a};
}

std::optional<ForeignTensor> ForeignModel::find(std::string_view ours) const {
  if (library_ == WeightNames::huggingface && is_adapter(ours)) return find_adapter(ours);
  for (const Rule& rule : rules_) {
    const auto found = match(rule.ours, ours);
    if (!found) continue;
    ForeignTensor tensor{{}, rule.transposed, rule.tied, rule.leading};
    const std::string theirs = written(rule.theirs, *found);
    for (const std::string& part : rule.parts) {
      std::string name = theirs;
      tensor.names.push_back(name.replace(name.find('@'), 1, part));
    }
    if (rule.parts.empty()) tensor.names.push_back(theirs);
    return tensor;
  }
  return std::nullopt;
}

bool ForeignModel::covers(const Graph& graph) const {
  const auto all = [&](const std::vector<ValueId>& ids) {
    return std::all_of(ids.begin(), ids.end(), [&](ValueId id) { return find(graph.at(id).name).has_value(); });
  };
  const bool whole = needed_.empty() || std::any_of(graph.parameters.begin(), graph.parameters.end(),
                                                    [&](ValueId id) { return graph.at(id).name == needed_; });
  return whole && !graph.parameters.empty() && all(graph.parameters) && all(graph.states);
}

std::span<const ForeignModel> foreign_models() {
  static const std::vector<ForeignModel> kModels = {
      {WeightNames::torchvision, "resnet", resnet_rules()},
      {WeightNames::torchvision, "mobilenet", mobilenet_rules()},
      {WeightNames::huggingface, "gpt2", gpt2_rules()},
      {WeightNames::huggingface, "llama", llama_rules()},
      {WeightNames::huggingface, "bert", bert_rules(), "types.weight"},
      {WeightNames::huggingface, "vit", vit_rules(), "class_token.weight"}};
  return kModels;
}

const ForeignModel* foreign_model(WeightNames library, const Graph& graph) {
  for (const ForeignModel& model : foreign_models()) {
    if (model.library() == library && model.covers(graph)) return &model;
  }
  return nullptr;
}

std::string torch_name(std::string_view ours) {
  constexpr std::array<std::string_view, 4> kRecurrent{"weight_ih", "weight_hh", "bias_ih", "bias_hh"};
  const std::size_t begin = ours.rfind('.') + 1;  // 0 without a layer
  const std::string_view layer = ours.substr(0, begin), tensor = ours.substr(begin);
  if (tensor == "running_variance") return fmt::format("{}running_var", layer);
  if (std::find(kRecurrent.begin(), kRecurrent.end(), tensor) == kRecurrent.end()) return std::string(ours);
  const auto module = [&](std::string_view direction) { return layer.substr(0, layer.size() - direction.size() + 1); };
  constexpr std::string_view kForwards = ".forwards.", kBackwards = ".backwards.";
  if (layer.ends_with(kForwards)) return fmt::format("{}{}_l0", module(kForwards), tensor);
  if (layer.ends_with(kBackwards)) return fmt::format("{}{}_l0_reverse", module(kBackwards), tensor);
  return fmt::format("{}{}_l0", layer, tensor);
}

}  // namespace lockstep
