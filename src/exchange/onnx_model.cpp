#include "exchange/onnx_model.hpp"

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

namespace lockstep::exchange {

namespace {

constexpr const char* kPrediction = "prediction";
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

onnx::TensorProto::DataType type_of(DType dtype) {
  return dtype == DType::i32 ? onnx::TensorProto::INT32 : onnx::TensorProto::FLOAT;
}

template <class T>
void add_constant(onnx::GraphProto& graph, const std::string& name, const Shape& shape, std::span<const T> values,
                  onnx::TensorProto::DataType type) {
  onnx::TensorProto& tensor = *graph.add_initializer();
  tensor.set_name(name);
  tensor.mutable_dims()->Assign(shape.begin(), shape.end());
  tensor.set_data_type(type);
  tensor.set_raw_data(values.data(), values.size_bytes());
}

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
};

void add_node(onnx::GraphProto& graph, const ops::OnnxNode& node) {
  onnx::NodeProto& to = *graph.add_node();
  to.set_op_type(node.type);
  to.set_name(node.name);
  to.mutable_input()->Assign(node.inputs.begin(), node.inputs.end());
  to.mutable_output()->Assign(node.outputs.begin(), node.outputs.end());
  for (const auto& [name, value] : node.attributes) {
    onnx::AttributeProto& attribute = *to.add_attribute();
    attribute.set_name(name);
    std::visit(SetAttribute{attribute}, value);
  }
}

void describe(onnx::ValueInfoProto& info, const std::string& name, const TensorSpec& spec) {
  info.set_name(name);
  auto& tensor = *info.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(type_of(spec.dtype));
  tensor.mutable_shape()->add_dim()->set_dim_param("batch");
  for (std::size_t i = 1; i < spec.shape.size(); ++i) tensor.mutable_shape()->add_dim()->set_dim_value(spec.shape[i]);
}

ops::OnnxNodes nodes_of(const ExportedModel& model) {
  const Graph& graph = *model.graph;
  ops::OnnxNodes made;
  for (const ValueId id : graph.inputs) made.values[{id, ops::Layout::channels_last}] = graph.at(id).name;
  const Node* last = nullptr;
  for (const Node& node : graph.nodes) {
    ops::OnnxScope scope(graph, node, model.values, made);
    ops::onnx_functions().at(node.op->name)(scope);
    if (node.outputs.front() == graph.output) last = &node;
  }
  LOCKSTEP_CHECK(last != nullptr, "a node makes the prediction");
  Node named = *last;  // an identity behind it, which has a name that is always the same
  named.inputs = {graph.output};
  named.name = kPrediction;
  const std::string value = ops::OnnxScope(graph, named, model.values, made).input();
  made.nodes.push_back({"Identity", kPrediction, {value}, {kPrediction}, {}});
  return made;
}

std::set<std::string> names_read(const ops::OnnxNodes& made) {
  std::set<std::string> names;
  for (const ops::OnnxNode& node : made.nodes) names.insert(node.inputs.begin(), node.inputs.end());
  return names;
}

/// A step as a job file has it.
nlohmann::json json_of(const AugmentOptions& step) {
  nlohmann::json settings = nlohmann::json::object();
  const auto add = [&settings](const std::string& name, const auto& value) {
    if constexpr (requires { settings[name] = value; }) {
      settings[name] = value;
    } else {
      settings[name] = to_string(Attribute(value));
    }
  };
  for (const auto& [name, value] : step.attributes.all()) {
    std::visit([&, &key = name](const auto& held) { add(key, held); }, value);
  }
  return {{step.name, settings}};
}

void add_metadata(onnx::ModelProto& file, const ExportedModel& model) {
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
  add_list("mean", model.mean);
  add_list("std", model.stddev);
  nlohmann::json steps = nlohmann::json::array();
  for (const AugmentOptions& step : model.prepare) steps.push_back(json_of(step));
  add_list("prepare", steps);
}

}  // namespace

std::string onnx_model(const ExportedModel& model) {
  const Graph& graph = *model.graph;
  require_known_ops(graph);
  onnx::ModelProto file;
  file.set_ir_version(kOnnxIrVersion);
  file.set_producer_name("lockstep");
  file.set_producer_version(version());
  file.add_opset_import()->set_version(kOnnxOpset);
  onnx::GraphProto& out = *file.mutable_graph();
  out.set_name(model.job);
  for (const ValueId id : graph.inputs) describe(*out.add_input(), graph.at(id).name, graph.at(id).spec);
  describe(*out.add_output(), kPrediction, graph.at(graph.output).spec);
  const ops::OnnxNodes made = nodes_of(model);
  const std::set<std::string> read = names_read(made);  // a recurrent layer's weights are there in another order only
  for (const auto* list : {&graph.parameters, &graph.states}) {
    for (const ValueId id : *list) {
      const Value& value = graph.at(id);
      if (!read.contains(value.name)) continue;
      add_constant(out, value.name, value.spec.shape, model.values(id), onnx::TensorProto::FLOAT);
    }
  }
  for (const ops::OnnxConstant& constant : made.constants) {
    if (const auto* floats = std::get_if<std::vector<float>>(&constant.values)) {
      add_constant<float>(out, constant.name, constant.shape, *floats, onnx::TensorProto::FLOAT);
    } else {
      add_constant<std::int64_t>(out, constant.name, constant.shape,
                                 std::get<std::vector<std::int64_t>>(constant.values), onnx::TensorProto::INT64);
    }
  }
  for (const ops::OnnxNode& node : made.nodes) add_node(out, node);
  add_metadata(file, model);
  if (file.ByteSizeLong() > kMostBytes) {
    throw Error(ExitCode::usage,
                fmt::format("--to onnx: expected a model of at most 2 GiB, which is what one ONNX file "
                            "can have, found {} bytes; take --to torch",
                            file.ByteSizeLong()));
  }
  return file.SerializeAsString();
}

}  // namespace lockstep::exchange
