// cross_entropy: -sum_k q_k log softmax(x)_k, where q is the target after label smoothing; a loss.
#include "lockstep/op.hpp"
#include "ops/per_sample.hpp"
#include "ops/registry.hpp"

namespace lockstep::ops {

std::unique_ptr<Kernel> make_cross_entropy_cpu(const KernelRequest& request);

namespace {

/// Saved: of each row its maximum, and the log of the sum of the exponentials of what is left without it.
Signature infer_cross_entropy(const Attributes& /*attributes*/, std::span<const TensorSpec> inputs) {
  Signature signature = classes_signature("cross_entropy", inputs);
  const Shape& shape = inputs[0].shape;
  signature.saved.assign(2, {DType::f32, Shape(shape.begin(), shape.end() - 1)});
  return signature;
}

Cost cross_entropy_cost(const Attributes& /*attributes*/, std::span<const TensorSpec> inputs,
                        const Signature& /*signature*/) {
  const auto n = static_cast<double>(inputs[0].elements());
  return {20 * n, 20 * n};
}

}  // namespace

OpDef make_cross_entropy() {
  OpDef op;
  op.name = "cross_entropy";
  op.doc = "softmax and negative log likelihood of the target class";
  op.kind = OpKind::loss;
  op.attributes = {{.name = "label_smoothing",
                    .kind = AttributeKind::number,
                    .doc = "share of the target that is spread over all classes",
                    .default_value = 0.0,
                    .minimum = 0,
                    .maximum = 1},
                   ignored_index_attribute()};
  op.min_inputs = op.max_inputs = 2;
  op.constant_inputs = {1};
  op.backward_reads = {.inputs = true, .outputs = false};
  op.in_place = {.over_input = true};
  op.infer = infer_cross_entropy;
  op.cost = cross_entropy_cost;
  op.kernels[DeviceKind::cpu] = make_cross_entropy_cpu;
  return op;
}

}  // namespace lockstep::ops
