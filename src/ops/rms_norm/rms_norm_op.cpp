// rms_norm: y = x / sqrt(mean(x^2) + epsilon) * weight over the last dimension. Saved: 1 / sqrt(...) of each row.
#include "lockstep/op.hpp"
#include "ops/elementwise.hpp"
#include "ops/registry.hpp"
#include "ops/rows.hpp"

namespace lockstep::ops {

std::unique_ptr<Kernel> make_rms_norm_cpu(const KernelRequest& request);

namespace {

Signature infer_rms_norm(const Attributes& /*attributes*/, std::span<const TensorSpec> inputs) {
  expect_rows("rms_norm", inputs[0]);
  Signature signature;
  signature.outputs = {inputs[0]};
  signature.parameters.push_back({"weight", {inputs[0].shape.back()}, Initializer::ones(), false});
  signature.saved = {per_row(inputs[0])};
  return signature;
}

}  // namespace

OpDef make_rms_norm() {
  OpDef op;
  op.name = "rms_norm";
  op.doc = "divides the last dimension by its root mean square";
  op.attributes = {{.name = "epsilon",
                    .kind = AttributeKind::number,
                    .doc = "added to the mean of squares",
                    .default_value = 1e-5,
                    .minimum = 0}};
  op.backward_reads = {.inputs = true, .outputs = false};
  op.infer = infer_rms_norm;
  op.cost = elementwise_cost<5, 11>;
  op.kernels[DeviceKind::cpu] = make_rms_norm_cpu;
  return op;
}

}  // namespace lockstep::ops
