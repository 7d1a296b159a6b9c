#include "step/exec/kernel_set.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "graph/precision.hpp"
#include "graph/weighted_loss.hpp"

namespace lockstep::exec {

namespace {

std::vector<TensorSpec> specs_of(const Graph& graph, const std::vector<ValueId>& ids) {
  std::vector<TensorSpec> specs;
  for (const ValueId id : ids) specs.push_back(graph.at(id).spec);
  return specs;
}

std::vector<TensorSpec> parameter_specs(const Graph& graph, const Node& node) {
  std::vector<TensorSpec> specs = specs_of(graph, node.parameters);
  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (node.low_precision_weights && is_low_precision_weight(graph, node, i)) specs[i].dtype = node.compute_type;
  }
  return specs;
}

/// What follows "LABEL: " in the line that begins with it; empty if there is none.
std::string algorithms_of(const std::vector<std::string>& algorithms, const std::string& label) {
  const std::string begin = label + ": ";
  const auto found = std::find_if(algorithms.begin(), algorithms.end(),
                                  [&](const auto& of_layer) { return of_layer.starts_with(begin); });
  return found == algorithms.end() ? "" : found->substr(begin.size());
}

KernelRequest request_of(const Graph& graph, const Node& node, Mode mode, bool keeps_weights) {
  KernelRequest request;
  request.node = node.name;
  request.attributes = &node.attributes;
  request.mode = mode;
  request.inputs = specs_of(graph, node.inputs);
  if (is_weighted(node)) request.inputs.pop_back();
  request.parameters = parameter_specs(graph, node);
  request.states = specs_of(graph, node.states);
  request.outputs = specs_of(graph, node.outputs);
  request.saved = node.saved;
  if (node.epilogue != nullptr) request.epilogue = node.epilogue->name;
  request.compute_type = node.compute_type;
  request.keeps_weights = keeps_weights;
  request.channels_last = !node.parameters.empty() && graph.at(node.parameters[0]).channels_last;
  const auto& with_gradient = node.op->kind == OpKind::loss ? node.inputs : node.outputs;
  if (!with_gradient.empty()) request.rounded_gradient = graph.at(with_gradient[0]).rounded_gradient;
  return request;
}

}  // namespace

std::string layer_label(const Node& node) {
  return fmt::format("{} '{}'", node.op->name, node.name);
}

KernelSet::KernelSet(const Graph& graph, Mode mode, const Device& device, int worker,
                     const std::vector<std::string>& algorithms, bool keeps_weights)
    : stream_(device.stream(worker)) {
  for (const Node& node : graph.nodes) {
    labels_.push_back(layer_label(node));
    auto& loss_inputs = loss_inputs_.emplace_back();
    if (node.op->kind == OpKind::loss || node.op->kind == OpKind::sum) {
      for (const ValueId id : node.inputs) loss_inputs.push_back(graph.at(id).spec.elements());
      if (is_weighted(node)) loss_inputs.pop_back();
    }
    const std::int64_t samples = loss_inputs.empty() ? 0 : graph.at(node.outputs[0]).spec.elements();
    weighted_samples_.push_back(is_weighted(node) ? samples : 0);
    loss_samples_.push_back(node.op->kind == OpKind::loss ? samples : 0);
    scales_loss_ = scales_loss_ || node.compute_type == DType::f16;
    auto& kernel = kernels_.emplace_back();
    if (node.op->view) continue;
    const std::string& layer = labels_.back();
    kernel = device.make_kernel(
        {node, request_of(graph, node, mode, keeps_weights), layer, algorithms_of(algorithms, layer), stream_});
  }
}

std::size_t KernelSet::workspace_bytes(std::int32_t node) const {
  const Kernel* kernel = at(node);
  return kernel == nullptr ? 0 : kernel->workspace_bytes();
}

std::vector<std::string> KernelSet::algorithms() const {
  std::vector<std::string> of_layers;
  for (std::size_t i = 0; i < kernels_.size(); ++i) {
    const std::string chosen = kernels_[i] == nullptr ? "" : kernels_[i]->algorithms();
    if (!chosen.empty()) of_layers.push_back(fmt::format("{}: {}", labels_[i], chosen));
  }
  return of_layers;
}

}  // namespace lockstep::exec
