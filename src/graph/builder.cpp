#include <fmt/format.h>

#include <algorithm>

#include "lockstep/error.hpp"
#include "lockstep/graph_builder.hpp"

namespace lockstep {

ValueId GraphBuilder::add_value(Value value) {
  graph_.values.push_back(std::move(value));
  return graph_.values.size() - 1;
}

ValueId GraphBuilder::input(const std::string& name, const TensorSpec& sample) {
  Value value;
  value.name = name;
  value.role = Role::input;
  value.spec = sample;
  value.spec.shape.insert(value.spec.shape.begin(), batch_);
  const ValueId id = add_value(std::move(value));
  graph_.inputs.push_back(id);
  return id;
}

std::string GraphBuilder::unique_name(const std::string& op, const std::string& wanted) {
  const int count = ++counts_[op];
  std::string name = wanted.empty() ? fmt::format("{}{}", op, count) : wanted;
  if (nodes_.contains(name)) {
    throw Error(ExitCode::configuration, fmt::format("two layers are called '{}'; give one another name", name));
  }
  return name;
}

void GraphBuilder::add_parameters(Node& node, const Signature& signature) {
  for (const auto& spec : signature.parameters) {
    if (spec.name == "weight" && node.attributes.has("tied")) {
      const std::string owner = node.attributes.text("tied");
      const auto shared = parameters_.find(owner + ".weight");
      if (shared == parameters_.end()) {
        throw Error(ExitCode::configuration,
                    fmt::format("tied: expected an earlier layer with a weight, found '{}'", owner));
      }
      if (graph_.at(shared->second).spec.shape != spec.shape) {
        throw Error(ExitCode::configuration,
                    fmt::format("tied: expected a weight of shape {}, but '{}' has {}", to_string(spec.shape), owner,
                                to_string(graph_.at(shared->second).spec.shape)));
      }
      node.parameters.push_back(shared->second);
      continue;
    }
    Value value;
    value.name = node.name + "." + spec.name;
    value.role = Role::parameter;
    value.spec = {DType::f32, spec.shape};
    value.initializer = spec.initializer;
    value.decay = spec.decay;
    const std::string name = value.name;
    const ValueId id = add_value(std::move(value));
    parameters_[name] = id;
    graph_.parameters.push_back(id);
    node.parameters.push_back(id);
  }
}

void GraphBuilder::add_states(Node& node, const Signature& signature) {
  for (const auto& spec : signature.states) {
    Value value;
    value.name = node.name + "." + spec.name;
    value.role = Role::state;
    value.spec = {DType::f32, spec.shape};
    value.initializer = spec.initializer;
    value.momentum = spec.momentum;
    const ValueId id = add_value(std::move(value));
    graph_.states.push_back(id);
    node.states.push_back(id);
  }
}

std::int32_t GraphBuilder::add_node(const std::string& op, const std::vector<ValueId>& inputs, Attributes attributes,
                                    const std::string& name) {
  const OpDef& definition = ops_.at(op);
  Node node;
  node.name = unique_name(op, name);
  node.block = block_;
  node.part = part_;
  node.op = &definition;
  node.inputs = inputs;
  try {
    node.attributes = complete(definition.attributes, std::move(attributes), op);
    const int count = inputs.size();
    if (count < definition.min_inputs || (definition.max_inputs >= 0 && count > definition.max_inputs)) {
      throw Error(ExitCode::configuration,
                  definition.min_inputs == definition.max_inputs
                      ? fmt::format("{}: expected {} input(s), found {}", op, definition.min_inputs, count)
                  : count < definition.min_inputs
                      ? fmt::format("{}: expected at least {} input(s), found {}", op, definition.min_inputs, count)
                      : fmt::format("{}: expected at most {} input(s), found {}", op, definition.max_inputs, count));
    }
    std::vector<TensorSpec> specs;
    for (const ValueId id : inputs) specs.push_back(spec(id));
    Signature signature = definition.infer(node.attributes, specs);
    add_parameters(node, signature);
    add_states(node, signature);
    node.saved = signature.saved;
    for (std::size_t i = 0; i < signature.outputs.size(); ++i) {
      Value value;
      value.name = i == 0 ? node.name : fmt::format("{}:{}", node.name, i);
      value.spec = signature.outputs[i];
      value.producer = graph_.nodes.size();
      node.outputs.push_back(add_value(std::move(value)));
    }
  } catch (const Error& error) {
    if (error.code() != ExitCode::configuration) throw;
    throw Error(error.code(), fmt::format("layer '{}': {}", node.name, error.what()));
  }
  nodes_[node.name] = graph_.nodes.size();
  graph_.nodes.push_back(std::move(node));
  return graph_.nodes.size() - 1;
}

ValueId GraphBuilder::apply(const std::string& op, const std::vector<ValueId>& inputs, Attributes attributes,
                            const std::string& name) {
  if (const auto& compose = ops_.at(op).compose) {
    const std::map<std::string, int> before = counts_;
    const std::string own = unique_name(op, name);
    const std::map<std::string, int> counts = counts_;  // its parts do not count: later layers keep their names
    if (const auto output = compose(*this, inputs, attributes, own)) {
      counts_ = counts;
      return *output;
    }
    counts_ = before;
  }
  const std::int32_t node = add_node(op, inputs, std::move(attributes), name);
  if (extend_) {
    const std::map<std::string, int> counts = counts_;  // what is added does not count: later layers keep their names
    const ValueId output = extend_(node);
    counts_ = counts;
    return output;
  }
  return graph_.nodes[node].outputs.at(0);
}

}  // namespace lockstep
