#include "graph/model_graph.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "core/glob.hpp"
#include "core/nearest.hpp"
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
    const std::size_t node = builder_.graph().nodes.size();
    try {
      previous_ = builder_.apply(layer.op, inputs, layer.attributes, layer.name);
    } catch (const Error& error) {
      if (error.code() != ExitCode::configuration) throw;
      fail_at(layer.place, error.what());
    }
    names_.emplace_back(builder_.graph().nodes.at(node).name, previous_);
  }
  [[nodiscard]] ValueId result() const { return previous_; }

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
  ValueId previous_ = -1;
};

ValueId build_model(GraphBuilder& builder, const ModelOptions& model, const ModelContext& context,
                    const ModelRegistry& models) {
  if (!model.zoo.empty()) {
    const ModelDef& def = models.at(model.zoo);
    try {
      return def.build(builder, complete(def.attributes, model.parameters, "model " + model.zoo), context);
    } catch (const Error& error) {
      if (error.code() != ExitCode::configuration) throw;
      fail_at(model.place, error.what());
    }
  }
  LayerList list(builder, context);
  for (const auto& layer : model.layers) list.add(layer);
  builder.begin_block("");
  builder.begin_part("");
  return list.result();
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
      Value& value = graph.values[static_cast<std::size_t>(id)];
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
    if (!node.parameters.empty()) graph.values[static_cast<std::size_t>(node.parameters.front())].matrix = is;
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

}  // namespace

std::vector<std::string> input_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const ValueId id : graph.inputs) names.push_back(graph.at(id).name);
  return names;
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

void add_loss_and_metrics(GraphBuilder& builder, ValueId prediction, ValueId target, const LossOptions& loss,
                          const std::vector<std::string>& metrics, ValueId weight) {
  Graph& graph = builder.graph();
  graph.loss = builder.add_node(loss.kind, {prediction, target}, loss.attributes, "loss");
  if (weight >= 0) graph.nodes[static_cast<std::size_t>(graph.loss)].inputs.push_back(weight);
  for (const auto& metric : metrics) {
    graph.metrics.push_back(builder.add_node(metric, {prediction, target},
                                             shared_attributes(builder.ops().at(metric), loss.attributes),
                                             "metric." + metric));
  }
}

Graph build_model_graph(const ModelGraphRequest& request, const OpRegistry& ops, const ModelRegistry& models) {
  GraphBuilder builder(ops, request.batch);
  ModelContext context{.inputs = {}, .classes = request.classes, .vocabulary = request.vocabulary, .context = 0};
  const std::string target = request.loss == nullptr ? "" : target_feature(request.loss->target, request.features);
  ValueId target_id = -1, weight_id = -1;
  const std::vector<std::string>& named = request.model->inputs;
  for (const auto& feature : request.features) {
    const bool is_target =
        request.loss == nullptr ? feature.name == "label" || feature.name == "target" : feature.name == target;
    const bool is_weight = feature.kind == Feature::Kind::weight;
    if ((is_target || is_weight) && request.loss == nullptr) continue;
    // An autoencoder's target is its input; then `inputs` says so.
    const bool is_input =
        (!is_target && !is_weight) || std::find(named.begin(), named.end(), feature.name) != named.end();
    const ValueId id = builder.input(feature.name, feature.spec);
    if (is_target) target_id = id;
    if (is_weight) weight_id = id;
    if (is_input) context.inputs.emplace_back(feature.name, id);
    if (feature.kind == Feature::Kind::tokens && !feature.spec.shape.empty()) context.context = feature.spec.shape[0];
  }
  select_inputs(*request.model, context);
  std::optional<Lora> lora;
  if (request.model->lora) lora.emplace(*request.model->lora, builder);
  builder.graph().output = build_model(builder, *request.model, context, models);
  if (lora) lora->finish();
  mark_matrices(builder.graph());
  freeze(builder.graph(), *request.model);
  if (request.loss != nullptr) {
    add_loss_and_metrics(builder, builder.graph().output, target_id, *request.loss, request.metrics, weight_id);
  }
  return std::move(builder.graph());
}

}  // namespace lockstep
