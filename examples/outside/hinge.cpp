#include "hinge.hpp"

#include <algorithm>

namespace {

using namespace lockstep;

/// Of a row of scores: the best class but the target.
std::int64_t rival(const float* row, std::int64_t classes, std::int64_t target) {
  std::int64_t best = target == 0 ? 1 : 0;
  for (std::int64_t k = 0; k < classes; ++k) {
    if (k != target && row[k] > row[best]) best = k;
  }
  return best;
}

/// Scores [b, classes] and labels [b] to a value and a count for each sample. The trainer adds both over all samples,
/// in an order that does not depend on the ranks, and divides once.
class Hinge final : public Kernel {
 public:
  Hinge(const KernelRequest& request, bool metric)
      : batch_(request.inputs[0].shape[0]), classes_(request.inputs[0].shape[1]), metric_(metric) {}

  void forward(const ForwardCall& call) override {
    auto* value = static_cast<float*>(call.outputs[0]);
    auto* count = static_cast<float*>(call.outputs[1]);
    for (std::int64_t i = 0; i < batch_; ++i) {
      const float loss = loss_of(call.inputs[0], call.inputs[1], i);
      value[i] = metric_ ? static_cast<float>(loss == 0) : loss;
      count[i] = 1;
    }
  }

  /// Of the loss alone; labels have no gradient.
  void backward(const BackwardCall& call) override {
    auto* gradient = static_cast<float*>(call.input_gradients[0]);
    std::fill_n(gradient, batch_ * classes_, 0.0F);
    for (std::int64_t i = 0; i < batch_; ++i) {
      if (loss_of(call.inputs[0], call.inputs[1], i) == 0) continue;
      const std::int64_t target = static_cast<const std::int32_t*>(call.inputs[1])[i];
      const float* row = static_cast<const float*>(call.inputs[0]) + i * classes_;
      gradient[i * classes_ + target] = -1;
      gradient[i * classes_ + rival(row, classes_, target)] = 1;
    }
  }

 private:
  [[nodiscard]] float loss_of(const void* scores, const void* labels, std::int64_t i) const {
    const float* row = static_cast<const float*>(scores) + i * classes_;
    const std::int64_t target = static_cast<const std::int32_t*>(labels)[i];
    return std::max(0.0F, 1 + row[rival(row, classes_, target)] - row[target]);
  }

  std::int64_t batch_, classes_;
  bool metric_;
};

OpDef of_scores(const std::string& name, const std::string& doc, OpKind kind) {
  OpDef op;
  op.name = name;
  op.doc = doc;
  op.kind = kind;
  op.min_inputs = op.max_inputs = 2;
  op.constant_inputs = {1};
  op.backward_reads = {.inputs = true, .outputs = false};
  op.infer = [](const Attributes&, std::span<const TensorSpec> inputs) {
    const std::int64_t batch = inputs[0].shape[0];
    Signature signature;
    signature.outputs = {{DType::f32, {batch}}, {DType::f32, {batch}}};
    return signature;
  };
  op.cost = [](const Attributes&, std::span<const TensorSpec> inputs, const Signature&) {
    const auto elements = static_cast<double>(inputs[0].elements());
    return Cost{.forward_flops = 2 * elements, .backward_flops = 2 * elements};
  };
  op.kernels[DeviceKind::cpu] = [kind](const KernelRequest& request) {
    return std::make_unique<Hinge>(request, kind == OpKind::metric);
  };
  return op;
}

}  // namespace

OpDef make_hinge() {
  return of_scores("hinge", "how far the target's score is from being 1 above all others", OpKind::loss);
}

OpDef make_clear_margin() {
  OpDef op = of_scores("clear_margin", "share of samples whose target's score is 1 above all others", OpKind::metric);
  op.differentiable = false;
  op.constant_inputs = {0, 1};
  return op;
}
