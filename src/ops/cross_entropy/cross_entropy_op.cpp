// cross_entropy: -sum_k q_k log softmax(x)_k, where q is the target after label smoothing; a loss, with `focal` of
// terms that are multiplied by (1 - softmax(x)_k)^focal. kl_divergence: sum_k q_k log(q_k / softmax(x)_k). perplexity:
// exp of its mean without smoothing, i.e. of the mean negative log likelihood of the target class; a metric.
#include <fmt/format.h>

#include "lockstep/error.hpp"
#include "ops/elementwise.hpp"
#include "ops/per_sample.hpp"

namespace lockstep::ops {

std::unique_ptr<Kernel> make_cross_entropy_cpu(const KernelRequest& request);
std::unique_ptr<Kernel> make_log_loss_cpu(const KernelRequest& request, double label_smoothing);
std::unique_ptr<Kernel> make_focal_cpu(const KernelRequest& request);
std::unique_ptr<Kernel> make_kl_divergence_cpu(const KernelRequest& request);

namespace {

/// Saved: for each row its maximum, and the log of the sum of exponentials of the differences from it.
Signature infer_log_loss(const std::string& op, std::span<const TensorSpec> inputs) {
  Signature signature = classes_signature(op, inputs);
  const Shape& shape = inputs[0].shape;
  signature.saved.assign(2, {DType::f32, Shape(shape.begin(), shape.end() - 1)});
  return signature;
}

Signature infer_kl_divergence(const Attributes& /*attributes*/, std::span<const TensorSpec> inputs) {
  if (inputs[1].dtype == DType::i32) {
    throw Error(ExitCode::configuration,
                fmt::format("kl_divergence: for a prediction {} expected a target of its shape, of probabilities in "
                            "f32, found {} of i32; for class numbers use cross_entropy",
                            to_string(inputs[0].shape), to_string(inputs[1].shape)));
  }
  return infer_log_loss("kl_divergence", inputs);
}

Cost cross_entropy_cost(const Attributes& /*attributes*/, std::span<const TensorSpec> inputs,
                        const Signature& /*signature*/) {
  const double n = inputs[0].elements();
  return {20 * n, 20 * n};
}

}  // namespace

OpDef make_cross_entropy() {
  OpDef op;
  op.name = "cross_entropy";
  op.doc = "softmax and negative log likelihood of the target class";
  op.kind = OpKind::loss;
  op.activation = "softmax";
  op.targets = TargetKind::classes;
  op.attributes = {{.name = "label_smoothing",
                    .kind = AttributeKind::number,
                    .doc = "share of the target spread over all classes",
                    .default_value = 0.0,
                    .minimum = 0,
                    .maximum = 1},
                   ignored_index_attribute(),
                   focal_attribute()};
  op.min_inputs = op.max_inputs = 2;
  op.constant_inputs = {1};
  op.backward_reads = {.inputs = true, .outputs = false};
  op.in_place = {.over_input = true};
  op.infer = [](const Attributes&, std::span<const TensorSpec> inputs) {
    return infer_log_loss("cross_entropy", inputs);
  };
  op.cost = cross_entropy_cost;
  op.kernels[DeviceKind::cpu] = [](const KernelRequest& request) {
    return focal_of(*request.attributes) > 0 ? make_focal_cpu(request) : make_cross_entropy_cpu(request);
  };
  op.rounds_gradient = {DeviceKind::cuda};
  return op;
}

OpDef make_kl_divergence() {
  OpDef op;
  op.name = "kl_divergence";
  op.doc = "softmax and Kullback-Leibler divergence from the target's probabilities";
  op.kind = OpKind::loss;
  op.activation = "softmax";
  op.targets = TargetKind::probabilities;
  op.min_inputs = op.max_inputs = 2;
  op.constant_inputs = {1};
  op.backward_reads = {.inputs = true, .outputs = false};
  op.in_place = {.over_input = true};
  op.infer = infer_kl_divergence;
  op.cost = elementwise_cost<40, 25>;
  op.kernels[DeviceKind::cpu] = make_kl_divergence_cpu;
  return op;
}

OpDef make_perplexity() {
  OpDef op = metric_of_classes("perplexity", "e to the mean cross entropy without label smoothing");
  op.exponential = true;
  op.higher_is_better = false;
  op.cost = elementwise_cost<20, 0>;
  op.kernels[DeviceKind::cpu] = [](const KernelRequest& request) { return make_log_loss_cpu(request, 0); };
  return op;
}

}  // namespace lockstep::ops
