#include "graph/model_graph.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>

#include "core/nearest.hpp"
#include "core/top_k.hpp"
#include "core/words.hpp"
#include "graph/fail_at.hpp"
#include "graph/lora.hpp"
#include "lockstep/error.hpp"

namespace lockstep {

namespace {

using Names = std::vector<std::pair<std::string, ValueId>>;

std::vector<std::string> keys(const Names& names) {
  std::vector<std::string> list;
  for (const auto& [name, id] : names) list.push_back(name);
  return list;
}

/// The layers of a list: each can refer to earlier ones and to the inputs by name.
class LayerList {
 public:
  LayerList(GraphBuilder& builder, const ModelContext& context) : builder_(builder), names_(context.inputs) {
    if (context.inputs.size() == 1) previous_ = context.inputs[0].second;
  }

  void add(const LayerOptions& layer) {
    std::vector<ValueId> inputs;
    if (layer.inputs.empty()) inputs.push_back(previous(layer));
    for (const auto& name : layer.inputs) inputs.push_back(name == "previous" ? previous(layer) : find(layer, name));
    builder_.begin_block(layer.block);
    builder_.begin_part(layer.part);
    const int count = ++counts_[layer.op];
    const std::string name = layer.name.empty() ? fmt::format("{}{}", layer.op, count) : layer.name;
    try {
      previous_ = builder_.apply(layer.op, inputs, layer.attributes, name);
    } catch (const Error& error) {
      if (error.code() != ExitCode::configuration) throw;
      fail_at(layer.place, error.what());
    }
    names_.emplace_back(name, previous_);
  }
  ValueId result() const { return previous_; }
  /// Of the inputs and of all layers so far.
  const Names& names() const { return names_; }

 private:
  ValueId previous(const LayerOptions& layer) const {
    if (previous_ < 0) {
      fail_at(layer.place, fmt::format("expected `inputs`, since the data set has several features: {}",
                                       fmt::join(keys(names_), ", ")));
    }
    return previous_;
  }
  ValueId find(const LayerOptions& layer, const std::string& name) const {
    for (const auto& [known, id] : names_) {
      if (known == name) return id;
    }
    const auto known = keys(names_);
    fail_at(layer.place, fmt::format("inputs: nothing feeds '{}': expected an earlier layer or a feature of the data "
                                     "set ({}){}",
                                     name, fmt::join(known, ", "), did_you_mean(name, known)));
  }

  GraphBuilder& builder_;
  Names names_;
  std::map<std::string, int> counts_;  ///< layers so far, by op
  ValueId previous_ = -1;
};

struct BuiltModel {
  ValueId result;
  Names layers;  ///< that a loss can name; of a zoo model none
};

BuiltModel build_model(GraphBuilder& builder, const ModelOptions& model, const ModelContext& context,
                       const ModelRegistry& models) {
  if (!model.zoo.empty()) {
    const ModelDef& def = models.at(model.zoo);
    try {
      return {def.build(builder, complete(def.attributes, model.parameters, "model " + model.zoo), context), {}};
    } catch (const Error& error) {
      if (error.code() != ExitCode::configuration) throw;
      fail_at(model.place, error.what());
    }
  }
  LayerList list(builder, context);
  for (const auto& layer : model.layers) list.add(layer);
  builder.begin_block("");
  builder.begin_part("");
  const auto first_layer = list.names().begin() + std::ssize(context.inputs);
  return {list.result(), {first_layer, list.names().end()}};
}

// `inputs:` of the model picks and orders the features.
void select_inputs(const ModelOptions& model, ModelContext& context) {
  if (model.inputs.empty()) return;
  Names chosen;
  for (const auto& name : model.inputs) {
    const auto found =
        std::find_if(context.inputs.begin(), context.inputs.end(), [&](const auto& i) { return i.first == name; });
    if (found == context.inputs.end()) {
      const auto known = keys(context.inputs);
      fail_at(model.place, fmt::format("inputs: nothing feeds '{}': expected a feature of the data set ({}){}", name,
                                       fmt::join(known, ", "), did_you_mean(name, known)));
    }
    chosen.push_back(*found);
  }
  context.inputs = std::move(chosen);
}

void freeze(Graph& graph, const ModelOptions& model) {
  for (const auto& pattern : model.freeze) {
    bool any = false;
    for (const ValueId id : graph.parameters) {
      Value& value = graph.values[id];
      if (!matches(pattern, value.name)) continue;
      value.frozen = any = true;
    }
    if (!any) {
      std::vector<std::string> names;
      for (const ValueId id : graph.parameters) names.push_back(graph.at(id).name);
      fail_at(model.place, fmt::format("freeze: no parameter matches '{}'{}", pattern, did_you_mean(pattern, names)));
    }
  }
}

// The weights of layers that multiply, but for the last of them, and for those that something else reads, too.
void mark_matrices(Graph& graph) {
  const auto set = [&](const Node& node, bool is) {
    if (!node.parameters.empty()) graph.values[node.parameters.front()].matrix = is;
  };
  const Node* last = nullptr;
  for (const Node& node : graph.nodes) {
    if (!node.op->multiplies || node.parameters.empty()) continue;
    set(node, true);
    last = &node;
  }
  if (last != nullptr) set(*last, false);
  for (const Node& node : graph.nodes) {
    if (!node.op->multiplies || node.attributes.has("tied")) set(node, false);
  }
}

// Metrics ignore what the loss ignores (`ignored_index`).
Attributes shared_attributes(const OpDef& metric, const Attributes& of_loss) {
  Attributes shared;
  for (const auto& spec : metric.attributes) {
    if (of_loss.has(spec.name)) shared.set(spec.name, of_loss.all().at(spec.name));
  }
  return shared;
}

ValueId output_of(const BuiltModel& model, const std::string& layer) {
  if (layer.empty()) return model.result;
  for (const auto& [name, id] : model.layers) {
    if (name == layer) return id;
  }
  const auto known = keys(model.layers);
  throw Error(ExitCode::configuration,
              known.empty() ? fmt::format("job.loss: output: expected none, since only a model of `layers:` has layers "
                                          "that a loss can name, found '{}'",
                                          layer)
                            : fmt::format("job.loss: output: expected a layer of the model ({}), found '{}'{}",
                                          fmt::join(known, ", "), layer, did_you_mean(layer, known)));
}

const TargetScale* scale_of(const ModelGraphRequest& request, const std::string& layer) {
  const auto found = request.scales.find(layer);
  return found == request.scales.end() ? nullptr : &found->second;
}

/// What the loss compares, and what metrics do, in the target's units. A prediction of other numbers than the target's
/// is left to the loss, which refuses it.
struct Judged {
  Compared of_loss, of_metrics;
};
Judged judged(GraphBuilder& builder, const Compared& own, const TargetScale* scale, const std::string& name) {
  const TensorSpec& spec = builder.spec(own.prediction);
  if (scale == nullptr || spec.elements() != builder.batch() * std::ssize(scale->mean)) return {own, own};
  return {{own.prediction, normalized(builder, own.target, *scale, "normalized " + name)},
          {in_units(builder, own.prediction, *scale, name + " in units"), own.target}};
}

/// One row a sample: what the layers predict, one after the other.
ValueId joined(GraphBuilder& builder, const BuiltModel& model, const ModelGraphRequest& request) {
  std::vector<ValueId> parts;
  const auto layers = request.outputs.empty() ? std::vector<std::string>{""} : request.outputs;
  for (const std::string& layer : layers) {
    const TargetScale* const scale = scale_of(request, layer);
    ValueId& part = parts.emplace_back(output_of(model, layer));
    if (scale != nullptr) part = in_units(builder, part, *scale, (layer.empty() ? "output" : layer) + " in units");
  }
  if (parts.size() == 1) return parts[0];
  builder.graph().outputs = parts;
  for (ValueId& part : parts) {
    if (builder.spec(part).shape.size() == 2) continue;
    part = builder.apply("flatten", {part}, {}, "flattened " + builder.graph().at(part).name);
  }
  return builder.apply("concat", parts, {}, "joined outputs");
}

/// The op of a metric.
std::string metric_op(const std::string& metric) {
  return top_k_of(metric) > 0 ? kTopKOp : metric;
}

/// A prediction of several numbers and its target, and these number by number.
class ComparedNumbers {
 public:
  /// `prefix`: of the names of metrics.
  ComparedNumbers(GraphBuilder& builder, Compared all, std::vector<std::string> names, std::string prefix)
      : builder_(builder), all_(all), names_(std::move(names)), prefix_(std::move(prefix)) {
    constexpr std::size_t kMost = 50;
    const Shape expected = {builder.batch(), std::ssize(names_)};
    const bool fits = builder.spec(all.prediction).shape == expected && builder.spec(all.target).shape == expected;
    if (names_.size() < 2 || names_.size() > kMost || !fits) names_.clear();
  }

  const Compared& all() const { return all_; }

  /// The metrics of the numbers, behind that of all.
  void add(const std::string& op, const Attributes& attributes, const std::string& metric, std::int32_t of_all) {
    const bool of_numbers = op == "mae" || op == "rmse" || op == "r2";
    if (names_.empty() || !of_numbers) return;
    Graph& graph = builder_.graph();
    graph.nodes[of_all].classes = names_;
    for (std::size_t i = 0; i < names_.size(); ++i) {
      if (parts_.size() == i) {
        parts_.push_back({part(all_.prediction, i, "prediction"), part(all_.target, i, "target")});
      }
      graph.metrics.push_back(builder_.add_node(op, {parts_[i].prediction, parts_[i].target}, attributes,
                                                fmt::format("metric.{}{}/{}", prefix_, names_[i], metric)));
    }
  }

 private:
  ValueId part(ValueId whole, std::size_t number, const char* what) {
    const std::int64_t begin = number;
    const ValueId id = builder_.apply("slice", {whole}, Attributes({{"begin", begin}, {"end", begin + 1}}),
                                      fmt::format("metric.{}{} {}", prefix_, names_[number], what));
    builder_.graph().values[id].exact = true;
    return id;
  }

  GraphBuilder& builder_;
  Compared all_;
  std::vector<std::string> names_;
  std::string prefix_;
  std::vector<Compared> parts_;
};

/// `prefix` and `metric`: of its name.
void add_metric(GraphBuilder& builder, const std::string& prefix, const std::string& metric, ComparedNumbers& compared,
                const LossOptions& loss) {
  const std::string op = metric_op(metric);
  Attributes attributes = shared_attributes(builder.ops().at(op), loss.attributes);
  if (const std::int64_t k = top_k_of(metric); k > 0) attributes.set("k", k);
  const std::int32_t node =
      builder.add_node(op, {compared.all().prediction, compared.all().target}, attributes, "metric." + prefix + metric);
  builder.graph().metrics.push_back(node);
  compared.add(op, attributes, metric, node);
}

/// Of the columns of a table, or of a CSV of images.
std::vector<std::string> names_of_numbers(const std::vector<Feature>& features, const std::string& target) {
  const auto found = std::find_if(features.begin(), features.end(), [&](const Feature& feature) {
    return feature.name == target && feature.kind == Feature::Kind::tensor;
  });
  return found == features.end() ? std::vector<std::string>() : found->classes;
}

/// Where a mask says that a pixel does not count, it does not, unless the job says otherwise.
LossOptions with_ignored_pixels(LossOptions loss, const ModelGraphRequest& request, const OpRegistry& ops) {
  const std::string target = target_feature(loss.target, request.features);
  const auto& declared = ops.at(loss.kind).attributes;
  const bool can_ignore = std::any_of(declared.begin(), declared.end(),
                                      [](const AttributeSpec& spec) { return spec.name == "ignored_index"; });
  const bool of_mask = std::any_of(request.features.begin(), request.features.end(), [&](const Feature& feature) {
    return feature.name == target && feature.kind == Feature::Kind::mask;
  });
  if (of_mask && can_ignore && !loss.attributes.has("ignored_index")) {
    loss.attributes.set("ignored_index", std::int64_t{kIgnoredPixel});
  }
  return loss;
}

/// Metrics of a target whose classes have names tell each of them.
void name_classes(Graph& graph, const std::vector<Feature>& features) {
  for (const std::int32_t index : graph.metrics) {
    Node& node = graph.nodes[index];
    if (!node.op->of_class) continue;
    const std::string& target = graph.at(node.inputs[1]).name;
    const auto found = std::find_if(features.begin(), features.end(), [&](const Feature& feature) {
      return feature.name == target && feature.kind != Feature::Kind::tensor;
    });
    if (found != features.end()) node.classes = found->classes;
  }
}

/// The weight of the layer that makes a prediction is none of those in between.
void mark_last(Graph& graph, ValueId prediction) {
  const std::int32_t node = graph.at(prediction).producer;
  if (node < 0 || graph.nodes[node].parameters.empty()) return;
  graph.values[graph.nodes[node].parameters.front()].matrix = false;
}

/// Each loss on its own, which is also a metric, then their sum, two at a time.
void add_losses(GraphBuilder& builder, const BuiltModel& model, const std::map<std::string, ValueId>& targets,
                const ModelGraphRequest& request, ValueId weight) {
  Graph& graph = builder.graph();
  const auto outputs_of = [&](std::int32_t node) { return graph.nodes[node].outputs; };
  std::vector<ValueId> sum;
  for (std::size_t i = 0; i < request.losses.size(); ++i) {
    const LossOptions loss = with_ignored_pixels(request.losses[i], request, builder.ops());
    const ValueId prediction = output_of(model, loss.output);
    mark_last(graph, prediction);
    const std::string feature = target_feature(loss.target, request.features);
    const ValueId target = targets.at(feature);
    const auto [of_loss, of_metrics] = judged(builder, {prediction, target}, scale_of(request, loss.output), loss.name);
    ComparedNumbers numbers(builder, of_metrics, names_of_numbers(request.features, feature), loss.name + "/");
    const std::int32_t node =
        builder.add_node(loss.kind, {of_loss.prediction, of_loss.target}, loss.attributes, loss.name + "/loss");
    graph.metrics.push_back(node);
    for (const std::string& metric : request.metrics) {
      if (!metric.starts_with(loss.name + "/")) continue;
      add_metric(builder, loss.name + "/", metric.substr(loss.name.size() + 1), numbers, loss);
    }
    const std::vector<ValueId> own = outputs_of(node);
    if (i == 0) {
      sum = own;
      continue;
    }
    sum.insert(sum.end(), own.begin(), own.end());
    const Attributes weights({{"first", i == 1 ? request.losses[0].weight : 1.0}, {"second", loss.weight}});
    const bool last = i + 1 == request.losses.size();
    graph.loss =
        builder.add_node("add_losses", sum, weights, last ? "loss" : fmt::format("losses up to {}", loss.name));
    sum = outputs_of(graph.loss);
  }
  if (weight >= 0) graph.nodes[graph.loss].inputs.push_back(weight);
}

}  // namespace

std::vector<std::string> input_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const ValueId id : graph.inputs) names.push_back(graph.at(id).name);
  return names;
}

std::vector<const Node*> loss_nodes(const Graph& graph) {
  std::vector<const Node*> nodes;
  for (const Node& node : graph.nodes) {
    if (node.op->kind == OpKind::loss) nodes.push_back(&node);
  }
  return nodes;
}

std::vector<Shape> output_shapes(const Graph& graph) {
  std::vector<Shape> shapes;
  for (const ValueId id : graph.outputs.empty() ? std::vector<ValueId>{graph.output} : graph.outputs) {
    const Shape& batch = graph.at(id).spec.shape;
    shapes.emplace_back(batch.begin() + 1, batch.end());
  }
  return shapes;
}

bool higher_is_better(const OpRegistry& ops, const std::string& metric) {
  const auto slash = metric.rfind('/');
  const OpDef* const op = ops.find(metric_op(slash == std::string::npos ? metric : metric.substr(slash + 1)));
  return op != nullptr && op->kind == OpKind::metric && op->higher_is_better;
}

std::string target_feature(const std::string& wanted, const std::vector<Feature>& features) {
  std::vector<std::string> names;
  for (const auto& feature : features) names.push_back(feature.name);
  const auto has = [&](const std::string& name) { return std::find(names.begin(), names.end(), name) != names.end(); };
  if (has(wanted)) return wanted;
  if (wanted == "label" && has("target")) return "target";
  throw Error(ExitCode::configuration,
              fmt::format("job.loss: target: expected a feature of the data set ({}), found '{}'{}",
                          fmt::join(names, ", "), wanted, did_you_mean(wanted, names)));
}

void add_loss_and_metrics(GraphBuilder& builder, const Compared& of_loss, const Compared& of_metrics,
                          const LossOptions& loss, const std::vector<std::string>& metrics,
                          const std::vector<std::string>& numbers, ValueId weight) {
  Graph& graph = builder.graph();
  graph.loss = builder.add_node(loss.kind, {of_loss.prediction, of_loss.target}, loss.attributes, "loss");
  if (weight >= 0) graph.nodes[graph.loss].inputs.push_back(weight);
  ComparedNumbers compared(builder, of_metrics, numbers, "");
  for (const auto& metric : metrics) add_metric(builder, "", metric, compared, loss);
}

Graph build_model_graph(const ModelGraphRequest& request, const OpRegistry& ops, const ModelRegistry& models) {
  GraphBuilder builder(ops, request.batch);
  ModelContext context{.inputs = {}, .classes = request.classes, .vocabulary = request.vocabulary, .context = 0};
  const bool has_loss = request.loss != nullptr || !request.losses.empty();
  std::map<std::string, ValueId> targets;
  if (request.loss != nullptr) targets[target_feature(request.loss->target, request.features)] = -1;
  for (const LossOptions& loss : request.losses) targets[target_feature(loss.target, request.features)] = -1;
  ValueId weight_id = -1;
  const std::vector<std::string>& named = request.model->inputs;
  for (const auto& feature : request.features) {
    const bool is_target =
        has_loss ? targets.contains(feature.name) : feature.name == "label" || feature.name == "target";
    const bool is_weight = feature.kind == Feature::Kind::weight;
    if ((is_target || is_weight) && !has_loss) continue;
    // An autoencoder's target is its input; then `inputs` says so.
    const bool is_input =
        (!is_target && !is_weight) || std::find(named.begin(), named.end(), feature.name) != named.end();
    const ValueId id = builder.input(feature.name, feature.spec);
    if (is_target) targets[feature.name] = id;
    if (is_weight) weight_id = id;
    if (is_input) context.inputs.emplace_back(feature.name, id);
    if (feature.kind == Feature::Kind::tokens && !feature.spec.shape.empty()) context.context = feature.spec.shape[0];
  }
  select_inputs(*request.model, context);
  std::optional<Lora> lora;
  if (request.model->lora) lora.emplace(*request.model->lora, builder);
  const BuiltModel model = build_model(builder, *request.model, context, models);
  if (lora) lora->finish();
  builder.graph().output = has_loss ? model.result : joined(builder, model, request);
  mark_matrices(builder.graph());
  freeze(builder.graph(), *request.model);
  if (request.loss != nullptr) {
    const LossOptions loss = with_ignored_pixels(*request.loss, request, ops);
    const auto& [name, target] = *targets.begin();
    const Judged compared = judged(builder, {model.result, target}, scale_of(request, ""), name);
    add_loss_and_metrics(builder, compared.of_loss, compared.of_metrics, loss, request.metrics,
                         names_of_numbers(request.features, name), weight_id);
    builder.graph().output = compared.of_metrics.prediction;
  } else if (has_loss) {
    add_losses(builder, model, targets, request, weight_id);
  }
  name_classes(builder.graph(), request.features);
  return std::move(builder.graph());
}

}  // namespace lockstep
