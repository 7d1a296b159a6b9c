// lstm and gru over the steps of x [b, T, in], to y [b, T, features]: the state begins at 0 for each sample, and every
// step's output is there (`slice` takes the last). Parameters as in PyTorch: weight_ih [gates * features, in],
// weight_hh [gates * features, features], bias_ih, bias_hh; recurrent_cells.hpp has the equations. Saved: the gates of
// each step and what else backward needs, [b, T, gates + 1, features].
//
// A bidirectional layer is made of two, one of which reads the steps from last to first, and gives [b, T, 2 *
// features]: those of the first and, in the order of x, those of the second. With a second input, lengths
// (ops/lengths.hpp), that begins at each sample's last step.
#include <fmt/format.h>

#include <array>
#include <cmath>

#include "lockstep/error.hpp"
#include "lockstep/graph_builder.hpp"
#include "ops/onnx_scope.hpp"
#include "ops/recurrent/recurrent_cells.hpp"

namespace lockstep::ops {

std::unique_ptr<Kernel> make_lstm_cpu(const KernelRequest& request);
std::unique_ptr<Kernel> make_gru_cpu(const KernelRequest& request);

namespace {

bool is_bidirectional(const Attributes& attributes) {
  return attributes.has("bidirectional") && attributes.boolean("bidirectional");
}

std::optional<ValueId> both_directions(const std::string& op, GraphBuilder& builder, const std::vector<ValueId>& inputs,
                                       Attributes attributes, const std::string& name) {
  if (!is_bidirectional(attributes) || inputs.empty()) return std::nullopt;
  attributes.set("bidirectional", false);
  const auto reversed = [&](ValueId x, const char* part) {
    std::vector<ValueId> with_lengths = inputs;
    with_lengths[0] = x;
    return builder.apply("reverse", with_lengths, {}, name + part);
  };
  // In PyTorch both are one module's (torch_name() of graph/foreign_names.hpp).
  const ValueId forward = builder.apply(op, {inputs[0]}, attributes, name + ".forwards");
  const ValueId backward = builder.apply(op, {reversed(inputs[0], ".reversed")}, attributes, name + ".backwards");
  return builder.apply("concat", {forward, reversed(backward, ".restored")}, {}, name);
}

template <class Cell>
Signature infer_recurrent(const std::string& op, const Attributes& attributes, std::span<const TensorSpec> inputs) {
  LOCKSTEP_CHECK(!is_bidirectional(attributes), "a layer of two directions is made by GraphBuilder::apply()");
  if (inputs.size() > 1) {
    throw Error(
        ExitCode::configuration,
        fmt::format("{}: expected one input, since a step sees only those before it and needs no lengths, found "
                    "{}; give only the first, or set bidirectional: true",
                    op, inputs.size()));
  }
  const TensorSpec& x = inputs[0];
  if (x.dtype != DType::f32 || x.shape.size() != 3) {
    throw Error(ExitCode::configuration,
                fmt::format("{}: expected an input [batch, time, width] of f32, found {} of {}", op, to_string(x.shape),
                            name_of(x.dtype)));
  }
  const std::int64_t units = attributes.integer("features"), gates = Cell::kGates * units;
  const Initializer uniform = Initializer::uniform(1 / std::sqrt(static_cast<double>(units)));
  Signature signature;
  signature.outputs = {{DType::f32, {x.shape[0], x.shape[1], units}}};
  signature.parameters = {{"weight_ih", {gates, x.shape[2]}, uniform}, {"weight_hh", {gates, units}, uniform}};
  if (attributes.boolean("bias")) {
    signature.parameters.push_back({"bias_ih", {gates}, uniform, false});
    signature.parameters.push_back({"bias_hh", {gates}, uniform, false});
  }
  signature.saved = {{DType::f32, {x.shape[0], x.shape[1], Cell::kKept, units}}};
  return signature;
}

template <class Cell>
Cost recurrent_cost(const Attributes& /*attributes*/, std::span<const TensorSpec> inputs, const Signature& signature) {
  const double outputs = signature.outputs[0].elements();
  const double terms = inputs[0].shape[2] + signature.outputs[0].shape[2];
  const double products = 2 * outputs * Cell::kGates * terms;
  return {products + outputs * Cell::kCost, 2 * products + outputs * Cell::kGradientCost};
}

template <class Cell>
OpDef recurrent_op(const std::string& name, const std::string& doc, KernelFactory cpu) {
  OpDef op;
  op.name = name;
  op.doc = doc;
  op.attributes = {
      {.name = "features", .kind = AttributeKind::integer, .doc = "size of the output's last dimension", .minimum = 1},
      {.name = "bias", .kind = AttributeKind::boolean, .doc = "add the two biases of each gate", .default_value = true},
      {.name = "bidirectional",
       .kind = AttributeKind::boolean,
       .doc = "both directions, with own weights and `features`; a second input, lengths, ends samples; default false",
       .optional = true}};
  op.shorthand = "features";
  op.max_inputs = 2;
  op.compose = [name](GraphBuilder& builder, const std::vector<ValueId>& inputs, const Attributes& attributes,
                      const std::string& layer) { return both_directions(name, builder, inputs, attributes, layer); };
  op.backward_reads = {.inputs = true, .outputs = true};
  op.infer = [name](const Attributes& attributes, std::span<const TensorSpec> inputs) {
    return infer_recurrent<Cell>(name, attributes, inputs);
  };
  op.cost = recurrent_cost<Cell>;
  op.kernels[DeviceKind::cpu] = std::move(cpu);
  return op;
}

/// The rows of a parameter, a block a gate, in ONNX's order; `gates`: for each of its gates our own.
void append_gates(std::span<const float> values, std::span<const int> gates, std::vector<float>& out) {
  const std::size_t block = values.size() / gates.size();
  for (const int gate : gates) {
    const auto rows = values.subspan(gate * block, block);
    out.insert(out.end(), rows.begin(), rows.end());
  }
}

/// ONNX's layer takes [T, b, in] and gives [T, directions, b, units].
void layer(OnnxScope& scope, const std::string& type, std::span<const int> gates,
           std::vector<OnnxAttribute> attributes) {
  const std::int64_t units = scope.attributes().integer("features"), in = scope.input_shape()[2];
  const auto rows = static_cast<std::int64_t>(gates.size()) * units;
  std::vector<float> of_input, of_state, biases;
  append_gates(scope.parameter_values(0), gates, of_input);
  append_gates(scope.parameter_values(1), gates, of_state);
  std::vector<std::string> inputs{scope.transpose(scope.input(), {1, 0, 2}),
                                  scope.constant(std::move(of_input), {1, rows, in}),
                                  scope.constant(std::move(of_state), {1, rows, units})};
  if (scope.parameters() == 4) {
    append_gates(scope.parameter_values(2), gates, biases);
    append_gates(scope.parameter_values(3), gates, biases);
    inputs.push_back(scope.constant(std::move(biases), {1, 2 * rows}));
  }
  attributes.push_back({"hidden_size", units});
  const std::string y = scope.add(type, inputs, std::move(attributes));
  scope.result(scope.transpose(scope.add("Squeeze", {y, scope.integers({1})}), {1, 0, 2}));
}

}  // namespace

OpDef make_lstm() {
  return recurrent_op<LstmCell>("lstm", "long short-term memory over a sequence", make_lstm_cpu);
}

OpDef make_gru() {
  return recurrent_op<GruCell>("gru", "gated recurrent units over a sequence", make_gru_cpu);
}

/// Ours are input, forget, cell, output; ONNX's input, output, forget, cell.
void lstm_to_onnx(OnnxScope& scope) {
  constexpr std::array<int, 4> kGates{0, 3, 1, 2};
  layer(scope, "LSTM", kGates, {});
}

/// Ours are reset, update, new; ONNX's update, reset, hidden.
void gru_to_onnx(OnnxScope& scope) {
  constexpr std::array<int, 3> kGates{1, 0, 2};
  layer(scope, "GRU", kGates, {{"linear_before_reset", std::int64_t{1}}});
}

}  // namespace lockstep::ops
