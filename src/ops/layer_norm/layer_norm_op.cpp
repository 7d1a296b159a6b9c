// layer_norm: y = (x - mean) / sqrt(variance + epsilon) * weight + bias over the last dimension.
// Saved: mean and 1 / sqrt(variance + epsilon) of each row.
#include "lockstep/op.hpp"
#include "ops/elementwise.hpp"
#include "ops/registry.hpp"
#include "ops/rows.hpp"

namespace lockstep::ops {

std::unique_ptr<Kernel> make_layer_norm_cpu(const KernelRequest& request);

namespace {

Signature infer_layer_norm(const Attributes& attributes, std::span<const TensorSpec> inputs) {
  expect_rows("layer_norm", inputs[0]);
  const std::int64_t size = inputs[0].shape.back();
  Signature signature;
  signature.outputs = {inputs[0]};
  signature.parameters.push_back({"weight", {size}, Initializer::ones(), false});
  if (attributes.boolean("bias")) signature.parameters.push_back({"bias", {size}, Initializer::zeros(), false});
  signature.saved = {per_row(inputs[0]), per_row(inputs[0])};
  return signature;
}

}  // namespace

OpDef make_layer_norm() {
  OpDef op;
  op.name = "layer_norm";
  op.doc = "normalises the last dimension to mean 0 and variance 1";
  op.attributes = {{.name = "epsilon",
                    .kind = AttributeKind::number,
                    .doc = "added to the variance",
                    .default_value = 1e-5,
                    .minimum = 0},
                   {.name = "bias", .kind = AttributeKind::boolean, .doc = "add a bias", .default_value = true}};
  op.backward_reads = {.inputs = true, .outputs = false};
  op.in_place = {.over_gradient = true, .over_input = true};
  op.infer = infer_layer_norm;
  op.cost = elementwise_cost<8, 14>;
  op.kernels[DeviceKind::cpu] = make_layer_norm_cpu;
  return op;
}

}  // namespace lockstep::ops
