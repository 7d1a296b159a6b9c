#include "graph/lora.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/nearest.hpp"
#include "core/words.hpp"
#include "graph/fail_at.hpp"
#include "lockstep/error.hpp"

namespace lockstep {

namespace {

constexpr std::string_view kA = ".lora_a", kB = ".lora_b", kScale = ".lora_scale", kWeight = ".weight";

std::string with(const std::string& layer, std::string_view suffix) {
  return layer + std::string(suffix);
}

const Node* node_named(const Graph& graph, const std::string& name) {
  const auto found =
      std::find_if(graph.nodes.begin(), graph.nodes.end(), [&](const Node& n) { return n.name == name; });
  return found == graph.nodes.end() ? nullptr : &*found;
}

}  // namespace

Lora::Lora(const LoraOptions& options, GraphBuilder& builder) : options_(options), builder_(builder) {
  builder_.extend([this](std::int32_t node) { return adapt(node); });
}

void Lora::refuse(const std::string& message) const {
  fail_at(options_.place, "lora: " + message);
}

ValueId Lora::adapt(std::int32_t index) {
  const Node& node = builder_.graph().nodes[index];
  const ValueId output = node.outputs.front(), input = node.inputs.front();
  if (node.op->name != "linear") return output;
  const std::string name = node.name;
  if (node.attributes.has("tied")) {
    tied_.insert(name);
    const std::string owner = node.attributes.text("tied");
    if (adapted_.contains(owner)) {  // whoever builds the model knows the place of the layer that shares
      throw Error(
          ExitCode::configuration,
          fmt::format("lora: expected layers whose weights are their own, found '{}', whose weight '{}' shares; "
                      "leave it out of layers",
                      owner, name));
    }
    return output;
  }
  if (!matches_any(options_.layers, name)) {
    others_.insert(name);
    return output;
  }
  adapted_.insert(name);
  const std::int64_t features = node.attributes.integer("features");
  const auto add = [&](const std::string& op, const std::vector<ValueId>& inputs, Attributes attributes,
                       std::string_view suffix) {
    const std::int32_t added = builder_.add_node(op, inputs, std::move(attributes), with(name, suffix));
    return builder_.graph().nodes[added].outputs.front();
  };
  ValueId x = input;
  if (options_.dropout > 0) x = add("dropout", {x}, Attributes({{"rate", options_.dropout}}), ".lora_dropout");
  x = add("linear", {x}, Attributes({{"features", options_.rank}, {"bias", false}}), kA);
  x = add("linear", {x}, Attributes({{"features", features}, {"bias", false}, {"init", std::string("zeros")}}), kB);
  const double scale = options_.alpha / options_.rank;
  x = add("scale", {x}, Attributes({{"factor", scale}}), kScale);
  return add("add", {output, x}, {}, ".lora");
}

void Lora::finish() {
  const auto any = [](const auto& names, const std::string& pattern) {
    return std::any_of(names.begin(), names.end(), [&](const std::string& name) { return matches(pattern, name); });
  };
  for (const std::string& pattern : options_.layers) {
    if (any(adapted_, pattern)) continue;
    if (any(tied_, pattern)) {
      refuse(
          fmt::format("expected layers whose weights are their own, found '{}', which shares the weight of another "
                      "layer",
                      pattern));
    }
    refuse(fmt::format("layers: no linear layer matches '{}'{}; `lockstep show` names them", pattern,
                       did_you_mean(pattern, {others_.begin(), others_.end()})));
  }
  Graph& graph = builder_.graph();
  std::vector<std::string> names;
  for (const ValueId id : graph.parameters) names.push_back(graph.at(id).name);
  for (const std::string& pattern : options_.train) {
    if (any(names, pattern)) continue;
    refuse(fmt::format("train: no parameter matches '{}'{}", pattern, did_you_mean(pattern, names)));
  }
  for (const ValueId id : graph.parameters) {
    Value& value = graph.values[id];
    value.frozen = !is_adapter(value.name) && !matches_any(options_.train, value.name);
  }
}

bool is_adapter(std::string_view parameter) {
  if (!parameter.ends_with(kWeight)) return false;
  parameter.remove_suffix(kWeight.size());
  return parameter.ends_with(kA) || parameter.ends_with(kB);
}

AdapterName adapter_name(std::string_view parameter) {
  LOCKSTEP_CHECK(is_adapter(parameter), "the name of an adapter");
  parameter.remove_suffix(kWeight.size());
  const bool is_a = parameter.ends_with(kA);
  parameter.remove_suffix(is_a ? kA.size() : kB.size());
  return {std::string(parameter), is_a};
}

std::vector<Adapter> adapters_of(const Graph& graph) {
  std::vector<Adapter> found;
  for (const Node& node : graph.nodes) {
    if (!node.name.ends_with(kA)) continue;
    const std::string layer = node.name.substr(0, node.name.size() - kA.size());
    const Node *b = node_named(graph, with(layer, kB)), *scale = node_named(graph, with(layer, kScale));
    if (b == nullptr || scale == nullptr) continue;
    found.push_back({layer, node.parameters.front(), b->parameters.front(), scale->attributes.number("factor")});
  }
  return found;
}

std::vector<float> merged_weight(std::span<const float> weight, std::span<const float> a, std::span<const float> b,
                                 std::int64_t rank, double scale) {
  const std::size_t inner = rank;
  const std::size_t out = b.size() / inner, in = a.size() / inner;
  std::vector<float> merged(weight.size());
  std::vector<double> row(in);
  for (std::size_t i = 0; i < out; ++i) {
    std::fill(row.begin(), row.end(), 0);
    for (std::size_t k = 0; k < inner; ++k) {
      const double factor = b[i * inner + k];
      for (std::size_t j = 0; j < in; ++j) row[j] += factor * a[k * in + j];
    }
    for (std::size_t j = 0; j < in; ++j) {
      merged[i * in + j] = weight[i * in + j] + (static_cast<float>(scale)) * row[j];
    }
  }
  return merged;
}

}  // namespace lockstep
