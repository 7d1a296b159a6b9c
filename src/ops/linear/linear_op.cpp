// linear: y = x * weight^T + bias over the last dimension; weight [features, in].
//
// Lowering replaces linear, gelu (tanh approximation) and another linear by two ops. linear_gelu: pre = x * weight^T +
// bias, and y = gelu(pre); gelu_linear: linear of y, which also reads pre. So the gradient of y is never written:
// gelu_linear computes that of pre, and there is none for y.
#include <fmt/format.h>

#include "lockstep/error.hpp"
#include "lockstep/op.hpp"
#include "ops/initialize.hpp"
#include "ops/onnx_scope.hpp"

namespace lockstep::ops {

std::unique_ptr<Kernel> make_linear_cpu(const KernelRequest& request);
std::unique_ptr<Kernel> make_linear_gelu_cpu(const KernelRequest& request);
std::unique_ptr<Kernel> make_gelu_linear_cpu(const KernelRequest& request);

namespace {

bool has_bias(const Attributes& attributes) {
  return attributes.has("bias") ? attributes.boolean("bias") : !attributes.has("tied");
}

Signature infer_linear(const Attributes& attributes, std::span<const TensorSpec> inputs) {
  const TensorSpec& x = inputs[0];
  if (x.dtype != DType::f32 || x.shape.size() < 2) {
    throw Error(ExitCode::configuration,
                fmt::format("linear: expected an input [batch, ..., features] of f32, found {} of {}",
                            to_string(x.shape), name_of(x.dtype)));
  }
  const std::int64_t in = x.shape.back(), out = attributes.integer("features");
  Signature signature;
  signature.outputs.push_back(x);
  signature.outputs[0].shape.back() = out;
  const double fan_in = in;
  signature.parameters.push_back({"weight", {out, in}, initializer_of(attributes, fan_in, out)});
  if (has_bias(attributes)) {
    signature.parameters.push_back({"bias", {out}, bias_initializer_of(attributes, fan_in), false});
  }
  return signature;
}

Cost linear_cost(const Attributes& /*attributes*/, std::span<const TensorSpec> inputs, const Signature& signature) {
  const double flops = 2.0 * static_cast<double>(inputs[0].elements()) * signature.outputs[0].shape.back();
  return {flops, 2 * flops};
}

}  // namespace

OpDef make_linear() {
  OpDef op;
  op.name = "linear";
  op.doc = "fully connected layer over the last dimension";
  op.attributes = {
      {.name = "features", .kind = AttributeKind::integer, .doc = "size of the output's last dimension", .minimum = 1},
      {.name = "bias",
       .kind = AttributeKind::boolean,
       .doc = "add a bias; default true, false where tied",
       .optional = true},
      {.name = "tied",
       .kind = AttributeKind::text,
       .doc = "layer whose weight [features, in] this layer shares",
       .optional = true}};
  for (auto& attribute : initializer_attributes()) op.attributes.push_back(std::move(attribute));
  op.shorthand = "features";
  op.backward_reads = {.inputs = true, .outputs = false};
  op.infer = infer_linear;
  op.cost = linear_cost;
  op.multiplies = true;
  op.kernels[DeviceKind::cpu] = make_linear_cpu;
  op.takes_low_precision = {DeviceKind::cpu};
  op.rounds_gradient = {DeviceKind::cuda};
  return op;
}

OpDef make_linear_gelu() {
  OpDef op = make_linear();
  op.name = "linear_gelu";
  op.doc = "linear, and gelu of it beside it";
  op.kind = OpKind::fused;
  op.infer = [infer = op.infer](const Attributes& attributes, std::span<const TensorSpec> inputs) {
    Signature signature = infer(attributes, inputs);
    signature.outputs.push_back(signature.outputs[0]);
    return signature;
  };
  op.kernels = {{DeviceKind::cpu, make_linear_gelu_cpu}};
  op.takes_low_precision = {};
  return op;
}

OpDef make_gelu_linear() {
  OpDef op = make_linear();
  op.name = "gelu_linear";
  op.doc = "linear of what gelu made, whose gradient goes on to gelu's input";
  op.kind = OpKind::fused;
  op.min_inputs = op.max_inputs = 2;
  op.constant_inputs = {0};
  op.infer = [infer = op.infer](const Attributes& attributes, std::span<const TensorSpec> inputs) {
    if (inputs[0] != inputs[1]) {
      throw Error(ExitCode::configuration,
                  fmt::format("gelu_linear: expected two inputs of one shape and type, found {} and {}",
                              to_string(inputs[0].shape), to_string(inputs[1].shape)));
    }
    return infer(attributes, inputs.first(1));
  };
  op.kernels = {{DeviceKind::cpu, make_gelu_linear_cpu}};
  op.takes_low_precision = {};
  return op;
}

void linear_to_onnx(OnnxScope& scope) {
  const bool bias = scope.parameters() == 2;
  if (scope.input_shape().size() == 2) {
    std::vector<std::string> inputs{scope.input(), scope.parameter(0)};
    if (bias) inputs.push_back(scope.parameter(1));
    return scope.result(scope.add("Gemm", inputs, {{"transB", std::int64_t{1}}}));
  }
  std::string y = scope.add("MatMul", {scope.input(), scope.transpose(scope.parameter(0), {1, 0})});
  if (bias) y = scope.add("Add", {y, scope.parameter(1)});
  scope.result(y);
}

}  // namespace lockstep::ops
