#include "tools/formats/onnx_model.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstddef>
#include <nlohmann/json.hpp>
#include <set>
#include <variant>

#include <onnx.pb.h>
#include "lockstep/error.hpp"
#include "lockstep/op.hpp"
#include "lockstep/version.hpp"
#include "ops/onnx_scope.hpp"
#include "tools/formats/onnx_schema.hpp"

namespace lockstep::formats {

namespace {

constexpr std::size_t kMostBytes = 0x7FFFFFFF;  // protobuf's limit

void require_known_ops(const Graph& graph) {
  std::set<std::string> unknown;
  for (const Node& node : graph.nodes) {
    if (!ops::onnx_functions().contains(node.op->name)) unknown.insert(node.op->name);
  }
  if (unknown.empty()) return;
  throw Error(ExitCode::usage, fmt::format("--to onnx: expected ops that lockstep can write to ONNX, found {}; export "
                                           "the weights with --to torch, or take other layers",
                                           fmt::join(unknown, ", ")));
}

/// Spells names as the file has them: a model's own values make way for inputs and outputs that are called alike.
class Names {
 public:
  explicit Names(const std::vector<OnnxPort>& inputs, const std::vector<OnnxPort>& outputs) {
    for (const auto* ports : {&inputs, &outputs}) {
      for (const OnnxPort& port : *ports) ports_.insert(port_name(port.name));
    }
  }
  std::string operator()(std::string name) const {
    if (ports_.contains(name)) return name.substr(1);
    while (ports_.contains(port_name(name))) name += '\'';
    return name;
  }

 private:
  std::set<std::string> ports_;
};

onnx::TensorProto& add_tensor(onnx::GraphProto& graph, const std::string& name, const Shape& shape) {
  onnx::TensorProto& tensor = *graph.add_initializer();
  tensor.set_name(name);
  tensor.mutable_dims()->Assign(shape.begin(), shape.end());
  return tensor;
}

struct SetValues {
  onnx::TensorProto& to;
  void operator()(std::span<const float> values) const { raw(onnx::TensorProto::FLOAT, values); }
  void operator()(std::span<const double> values) const { raw(onnx::TensorProto::DOUBLE, values); }
  void operator()(std::span<const std::int64_t> values) const { raw(onnx::TensorProto::INT64, values); }
  void operator()(std::span<const std::string> values) const {
    to.set_data_type(onnx::TensorProto::STRING);
    to.mutable_string_data()->Assign(values.begin(), values.end());
  }

 private:
  template <class T>
  void raw(onnx::TensorProto::DataType type, std::span<const T> values) const {
    to.set_data_type(type);
    to.set_raw_data(values.data(), values.size_bytes());
  }
};

struct SetAttribute {
  onnx::AttributeProto& to;
  void operator()(std::int64_t value) const {
    to.set_type(onnx::AttributeProto::INT);
    to.set_i(value);
  }
  void operator()(float value) const {
    to.set_type(onnx::AttributeProto::FLOAT);
    to.set_f(value);
  }
  void operator()(const std::string& value) const {
    to.set_type(onnx::AttributeProto::STRING);
    to.set_s(value);
  }
  void operator()(const std::vector<std::int64_t>& values) const {
    to.set_type(onnx::AttributeProto::INTS);
    to.mutable_ints()->Assign(values.begin(), values.end());
  }
  void operator()(const std::vector<std::string>& values) const {
    to.set_type(onnx::AttributeProto::STRINGS);
    to.mutable_strings()->Assign(values.begin(), values.end());
  }
};

void add_node(onnx::GraphProto& graph, const ops::OnnxNode& node, const Names& spelled) {
  onnx::NodeProto& to = *graph.add_node();
  to.set_op_type(node.type);
  to.set_domain(node.domain);
  to.set_name(node.name);
  for (const std::string& name : node.inputs) to.add_input(spelled(name));
  for (const std::string& name : node.outputs) to.add_output(spelled(name));
  for (const auto& [name, value] : node.attributes) {
    onnx::AttributeProto& attribute = *to.add_attribute();
    attribute.set_name(name);
    std::visit(SetAttribute{attribute}, value);
  }
}

void describe(onnx::ValueInfoProto& info, const OnnxPort& port) {
  info.set_name(port.name);
  auto& tensor = *info.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(static_cast<int>(port.type));
  tensor.mutable_shape()->add_dim()->set_dim_param("batch");
  for (const std::int64_t size : port.shape) tensor.mutable_shape()->add_dim()->set_dim_value(size);
}

/// Adds the layers' nodes; returns the value of the prediction.
std::string add_layers(const ExportedModel& model, ops::OnnxNodes& made) {
  const Graph& graph = *model.graph;
  const Node* last = nullptr;
  for (const Node& node : graph.nodes) {
    ops::OnnxScope scope(graph, node, model.values, made);
    ops::onnx_functions().at(node.op->name)(scope);
    if (node.outputs.front() == graph.output) last = &node;
  }
  LOCKSTEP_CHECK(last != nullptr, "a node makes the prediction");
  Node reader = *last;  // as what reads it behind the last layer
  reader.inputs = {graph.output};
  reader.name = "prediction";
  return ops::OnnxScope(graph, reader, model.values, made).input();
}

std::set<std::string> names_read(const ops::OnnxNodes& made) {
  std::set<std::string> names;
  for (const ops::OnnxNode& node : made.nodes) names.insert(node.inputs.begin(), node.inputs.end());
  return names;
}

void add_metadata(onnx::ModelProto& file, const ExportedModel& model, bool layers_only) {
  const auto add = [&](const std::string& key, const std::string& value) {
    onnx::StringStringEntryProto& entry = *file.add_metadata_props();
    entry.set_key(key);
    entry.set_value(value);
  };
  const auto add_list = [&](const std::string& key, const nlohmann::json& list) {
    if (!list.empty()) add(key, list.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  };
  add("job", model.job);
  add("checkpoint", model.source);
  add_list("labels", model.labels);
  add_list("tokens", model.tokens);
  if (layers_only) {  // else the graph does that
    add_list("mean", model.mean);
    add_list("std", model.stddev);
  }
  const std::string facts = exported_facts(model);
  add_list("prepare", nlohmann::json::parse(facts).at("prepare"));
  add("lockstep.data", facts);
}

}  // namespace

std::string onnx_model(const ExportedModel& model, bool layers_only) {
  const Graph& graph = *model.graph;
  require_known_ops(graph);
  ops::OnnxNodes made;
  const auto inputs = add_onnx_inputs(model, layers_only, made);
  const auto outputs = add_onnx_outputs(model, layers_only, add_layers(model, made), inputs, made);
  const Names spelled(inputs, outputs);
  onnx::ModelProto file;
  file.set_ir_version(kOnnxIrVersion);
  file.set_producer_name("lockstep");
  file.set_producer_version(version());
  file.add_opset_import()->set_version(kOnnxOpset);
  onnx::GraphProto& out = *file.mutable_graph();
  out.set_name(model.job);
  for (const OnnxPort& port : inputs) describe(*out.add_input(), port);
  for (const OnnxPort& port : outputs) describe(*out.add_output(), port);
  const std::set<std::string> read = names_read(made);  // a recurrent layer's weights are there in another order only
  for (const auto* list : {&graph.parameters, &graph.states}) {
    for (const ValueId id : *list) {
      const Value& value = graph.at(id);
      if (read.contains(value.name))
        SetValues{add_tensor(out, spelled(value.name), value.spec.shape)}(model.values(id));
    }
  }
  for (const ops::OnnxConstant& constant : made.constants) {
    std::visit(SetValues{add_tensor(out, spelled(constant.name), constant.shape)}, constant.values);
  }
  std::set<std::string> domains;
  for (const ops::OnnxNode& node : made.nodes) {
    add_node(out, node, spelled);
    if (!node.domain.empty()) domains.insert(node.domain);
  }
  for (const std::string& domain : domains) {
    onnx::OperatorSetIdProto& opset = *file.add_opset_import();
    opset.set_domain(domain);
    opset.set_version(kOnnxMlOpset);
  }
  add_metadata(file, model, layers_only);
  if (file.ByteSizeLong() > kMostBytes) {
    throw Error(ExitCode::usage,
                fmt::format("--to onnx: expected a model of at most 2 GiB, which is what one ONNX file "
                            "can have, found {} bytes; take --to torch",
                            file.ByteSizeLong()));
  }
  return file.SerializeAsString();
}

}  // namespace lockstep::formats
