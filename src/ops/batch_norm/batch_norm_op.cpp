// batch_norm: y = (x - mean) / sqrt(variance + epsilon) * weight + bias, by channel (the last dimension).
//
// In training, mean and variance are those of the micro-batch, over all dimensions but the last; the running ones are
// states, updated from the micro-batch's mean and unbiased variance. In inference the states are used.
#include <fmt/format.h>

#include "lockstep/error.hpp"
#include "lockstep/op.hpp"
#include "ops/onnx_scope.hpp"

namespace lockstep::ops {

std::unique_ptr<Kernel> make_batch_norm_cpu(const KernelRequest& request);

namespace {

Signature infer_batch_norm(const Attributes& attributes, std::span<const TensorSpec> inputs) {
  const TensorSpec& x = inputs[0];
  if (x.dtype != DType::f32 || x.shape.size() < 2 || x.shape.back() == 0) {
    throw Error(ExitCode::configuration,
                fmt::format("batch_norm: expected an input [batch, ..., channels] of f32, found {} of {}",
                            to_string(x.shape), name_of(x.dtype)));
  }
  const Shape channels{x.shape.back()};
  const double momentum = attributes.number("momentum");
  Signature signature;
  signature.outputs.push_back(x);
  signature.parameters.push_back(
      {"weight", channels, attributes.boolean("zero_init") ? Initializer::zeros() : Initializer::ones(), false});
  signature.parameters.push_back({"bias", channels, Initializer::zeros(), false});
  signature.states.push_back({"running_mean", channels, Initializer::zeros(), momentum});
  signature.states.push_back({"running_variance", channels, Initializer::ones(), momentum});
  signature.saved = {{DType::f32, channels}, {DType::f32, channels}};  // mean, 1 / std
  return signature;
}

Cost batch_norm_cost(const Attributes& /*attributes*/, std::span<const TensorSpec> inputs,
                     const Signature& /*signature*/) {
  const double n = inputs[0].elements();
  return {7 * n, 9 * n};
}

}  // namespace

OpDef make_batch_norm() {
  OpDef op;
  op.name = "batch_norm";
  op.doc = "normalizes channels over the samples of a micro-batch";
  op.attributes = {{.name = "epsilon",
                    .kind = AttributeKind::number,
                    .doc = "added to the variance",
                    .default_value = Attribute(1e-5),
                    .minimum = 0},
                   {.name = "momentum",
                    .kind = AttributeKind::number,
                    .doc = "weight of a step's statistics in the running ones",
                    .default_value = Attribute(0.1),
                    .minimum = 0,
                    .maximum = 1},
                   {.name = "zero_init",
                    .kind = AttributeKind::boolean,
                    .doc = "the weight starts at 0, so a residual block starts as the identity",
                    .default_value = Attribute(false)}};
  op.backward_reads = {.inputs = true, .outputs = false};
  op.in_place = {.forward = true, .over_gradient = true, .over_input = true};
  op.infer = infer_batch_norm;
  op.cost = batch_norm_cost;
  op.kernels[DeviceKind::cpu] = make_batch_norm_cpu;
  op.epilogues = {{DeviceKind::cpu, {"relu"}}, {DeviceKind::cuda, {"relu"}}};
  return op;
}

void batch_norm_to_onnx(OnnxScope& scope) {
  const std::vector<std::string> inputs{scope.input(0, Layout::channels_first), scope.parameter(0), scope.parameter(1),
                                        scope.state(0), scope.state(1)};
  const float epsilon = scope.attributes().number("epsilon");
  scope.result(scope.add("BatchNormalization", inputs, {{"epsilon", epsilon}}), Layout::channels_first);
}

}  // namespace lockstep::ops
