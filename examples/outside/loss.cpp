// A custom loss: hinge, the sum over wrong classes of max(0, margin + their score - the score of the right one).
#include <lockstep/op.hpp>

#include <algorithm>

#include "example.hpp"

namespace {

using namespace lockstep;

/// Inputs: scores [samples, classes], labels [samples]. Outputs: for each sample its loss and its count.
class Hinge final : public Kernel {
 public:
  explicit Hinge(const KernelRequest& request)
      : samples_(request.inputs[0].shape[0]),
        classes_(request.inputs[0].shape[1]),
        margin_(static_cast<float>(request.attributes->number("margin"))) {}

  void forward(const ForwardCall& call) override {
    const auto* labels = static_cast<const std::int32_t*>(call.inputs[1]);
    for (std::int64_t s = 0; s < samples_; ++s) {
      const float* x = static_cast<const float*>(call.inputs[0]) + s * classes_;
      float loss = 0;
      for (std::int64_t k = 0; k < classes_; ++k) {
        if (k != labels[s]) loss += std::max(0.0F, margin_ + x[k] - x[labels[s]]);
      }
      static_cast<float*>(call.outputs[0])[s] = loss;
      static_cast<float*>(call.outputs[1])[s] = 1;
    }
  }

  // The gradient of the sum of the losses: the division by the sum of counts happens once, over all ranks.
  void backward(const BackwardCall& call) override {
    const auto* labels = static_cast<const std::int32_t*>(call.inputs[1]);
    for (std::int64_t s = 0; s < samples_; ++s) {
      const float* x = static_cast<const float*>(call.inputs[0]) + s * classes_;
      float* dx = static_cast<float*>(call.input_gradients[0]) + s * classes_;
      std::fill_n(dx, classes_, 0.0F);
      for (std::int64_t k = 0; k < classes_; ++k) {
        if (k == labels[s] || margin_ + x[k] - x[labels[s]] <= 0) continue;
        dx[k] += 1;
        dx[labels[s]] -= 1;
      }
    }
  }

 private:
  std::int64_t samples_, classes_;
  float margin_;
};

OpDef hinge() {
  OpDef op;
  op.name = "hinge";
  op.doc = "the sum over wrong classes of max(0, margin + score - the right one's)";
  op.kind = OpKind::loss;
  op.targets = TargetKind::classes;
  op.min_inputs = op.max_inputs = 2;
  op.constant_inputs = {1};
  op.attributes = {{.name = "margin", .kind = AttributeKind::number, .doc = "wanted", .default_value = 1.0}};
  op.backward_reads = {.inputs = true, .outputs = false};
  op.infer = [](const Attributes&, std::span<const TensorSpec> inputs) {
    const TensorSpec of_samples{DType::f32, {inputs[0].shape[0]}};
    return Signature{.outputs = {of_samples, of_samples}, .parameters = {}, .states = {}, .saved = {}};
  };
  op.cost = [](const Attributes&, std::span<const TensorSpec> inputs, const Signature&) {
    const auto scores = static_cast<double>(inputs[0].elements());
    return Cost{.forward_flops = 4 * scores, .backward_flops = 4 * scores};
  };
  op.kernels[DeviceKind::cpu] = [](const KernelRequest& request) { return std::make_unique<Hinge>(request); };
  return op;
}

}  // namespace

int main() {
  return run_example([] {
    Registries registries = Registries::built_in();
    registries.ops.add(hinge());
    const JobFile job = digits(registries, {"loss={hinge: {margin: 2}}"});
    return same_bits([&](Communicator& communicator) { return train_job(job, communicator, registries); });
  });
}
