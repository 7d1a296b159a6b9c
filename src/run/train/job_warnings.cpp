#include "run/train/job_warnings.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/top_k.hpp"
#include "graph/model_graph.hpp"
#include "graph/sample_positions.hpp"
#include "lockstep/data_set.hpp"
#include "lockstep/op.hpp"

namespace lockstep::train {

namespace {

const Node* producer(const Graph& graph, ValueId id) {
  const std::int32_t node = graph.at(id).producer;
  return node < 0 ? nullptr : &graph.nodes[node];
}

std::string twice_normalized(const Graph& graph, const Node& loss) {
  const Node* last = producer(graph, loss.inputs[0]);
  while (last != nullptr && last->op->view) last = producer(graph, last->inputs[0]);
  if (last == nullptr || last->op->name != loss.op->activation) return "";
  return fmt::format(
      "layer '{}': {} applies {} itself, so it is applied twice: gradients are small and training is "
      "slow; leave the layer out",
      last->name, loss.op->name, loss.op->activation);
}

std::string unused_classes(const Graph& graph, const Node& loss, const input::PreparedData& data) {
  const std::int64_t predicted = graph.at(loss.inputs[0]).spec.shape.back();
  const Value& target = graph.at(loss.inputs[1]);
  const bool of_classes =
      loss.op->targets == TargetKind::classes && target.spec.dtype == DType::i32 && target.name == "label";
  if (!of_classes || data.schema.classes() == 0 || predicted <= data.schema.classes()) return "";
  return fmt::format(
      "the model predicts {} classes, and the data set has {}: the others are never right; give the last "
      "layer {} features, unless later data has more classes",
      predicted, data.schema.classes(), data.schema.classes());
}

std::string statistics_of_one_sample(const Graph& graph) {
  const auto is_alone = [&](const Node& node) {
    return node.op->name == "batch_norm" && graph.at(node.inputs[0]).spec.shape.front() == 1;
  };
  const auto found = std::find_if(graph.nodes.begin(), graph.nodes.end(), is_alone);
  if (found == graph.nodes.end()) return "";
  return fmt::format(
      "layer '{}' normalizes over a micro-batch, and a micro-batch is one sample: its statistics are not those of "
      "evaluation, which are means over many; use fewer micro-batches, a larger batch, or group_norm",
      found->name);
}

std::string padding_as_text(const Graph& graph) {
  const auto reads = [](const Node& node, ValueId id) {
    return std::find(node.inputs.begin(), node.inputs.end(), id) != node.inputs.end();
  };
  for (const ValueId id : graph.inputs) {
    if (graph.at(id).name != kLength) continue;
    if (std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) { return reads(node, id); })) break;
    return fmt::format(
        "no layer reads '{}', so the padding behind the end of a text counts as text; name it as the last input of "
        "attention, mean, max, global_pool, last or reverse",
        kLength);
  }
  return "";
}

std::string padding_summed_up(const Graph& graph) {
  const std::string layer = padding_counted(graph);
  if (layer.empty()) return "";
  return fmt::format(
      "layer '{}' counts the padding behind the end of a text, which other layers leave out; name '{}' as "
      "its last input",
      layer, kLength);
}

/// Whether the target is each position's next token. Where tokens are hidden instead, the loss ignores the others.
bool predicts_next_token(const Graph& graph, const Node& loss, const input::PreparedData& data) {
  const auto is_tokens = [](const Feature& feature) { return feature.kind == Feature::Kind::tokens; };
  const bool windows = data.features.size() == 2 && data.features[1].name == "target" &&
                       std::all_of(data.features.begin(), data.features.end(), is_tokens);
  return windows && graph.at(loss.inputs[1]).name == "target" && !loss.attributes.has("ignored_index");
}

// A position that sees the next one sees what it is to predict.
std::string sees_its_target(const Graph& graph, const Node& loss, const input::PreparedData& data) {
  if (!predicts_next_token(graph, loss, data)) return "";
  const auto sees_all = [](const Node& node) {
    return node.op->name == "attention" && !node.attributes.boolean("causal");
  };
  const auto found = std::find_if(graph.nodes.begin(), graph.nodes.end(), sees_all);
  if (found == graph.nodes.end()) return "";
  return fmt::format(
      "layer '{}' sees the tokens that the model is to predict from those before them; add `causal: true`",
      found->name);
}

std::string never_evaluated(const Graph& graph, const input::PreparedData& data) {
  if (data.validation) return "";
  for (const std::int32_t metric : graph.metrics) {
    const Node& node = graph.nodes[metric];
    if (!node.op->of_samples) continue;
    return fmt::format(
        "metric '{}' is of a whole set, so steps do not report it, and there is no data.validation to "
        "evaluate it on",
        node.op->name);
  }
  return "";
}

/// Of a topK that no prediction misses, since there are no more than K classes.
std::string always_right(const Graph& graph) {
  for (const std::int32_t metric : graph.metrics) {
    const Node& node = graph.nodes[metric];
    if (node.op->name != kTopKOp) continue;
    const std::int64_t k = node.attributes.integer("k"), classes = graph.at(node.inputs[0]).spec.shape.back();
    if (k < classes) continue;
    return fmt::format("metric 'top{}' is always 1, since the model predicts {} classes; ask for a smaller number", k,
                       classes);
  }
  return "";
}

/// Of several labels that a sample may have at once, a metric that looks for the largest alone.
std::string one_of_several_labels(const Graph& graph, const Node& loss, const input::PreparedData& data) {
  if (loss.op->targets != TargetKind::shares) return "";
  const auto& features = data.schema.info.features;
  const std::string& target = graph.at(loss.inputs[1]).name;
  const bool of_columns = std::any_of(features.begin(), features.end(), [&](const Feature& feature) {
    return feature.name == target && feature.kind == Feature::Kind::tensor && feature.classes.size() > 1;
  });
  for (const std::int32_t metric : graph.metrics) {
    const Node& node = graph.nodes[metric];
    if (!of_columns || node.op->targets != TargetKind::classes || graph.at(node.inputs[1]).name != target) continue;
    return fmt::format(
        "metric '{}' compares the largest prediction with the largest target, as if each sample had one label; for "
        "several labels take binary_accuracy, f1 or auc",
        node.op->name);
  }
  return "";
}

}  // namespace

std::vector<std::string> job_warnings(const Graph& graph, const input::PreparedData& data) {
  std::vector<std::string> warnings;
  for (const Node* const loss : loss_nodes(graph)) {
    warnings.push_back(twice_normalized(graph, *loss));
    warnings.push_back(unused_classes(graph, *loss, data));
    warnings.push_back(sees_its_target(graph, *loss, data));
    warnings.push_back(one_of_several_labels(graph, *loss, data));
  }
  warnings.push_back(statistics_of_one_sample(graph));
  warnings.push_back(padding_as_text(graph));
  warnings.push_back(padding_summed_up(graph));
  warnings.push_back(never_evaluated(graph, data));
  warnings.push_back(always_right(graph));
  std::erase(warnings, "");
  return warnings;
}

}  // namespace lockstep::train
