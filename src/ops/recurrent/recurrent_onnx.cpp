#include <array>

#include "ops/onnx_scope.hpp"

namespace lockstep::ops {

namespace {

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
