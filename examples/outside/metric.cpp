// A custom metric: margin, by how much the right class's score exceeds the best of the others, on average.
#include <lockstep/op.hpp>

#include <algorithm>
#include <limits>

#include "example.hpp"

namespace {

using namespace lockstep;

/// Inputs: scores [samples, classes], labels [samples]. Outputs: for each sample its value and its count.
class Margin final : public Kernel {
 public:
  explicit Margin(const KernelRequest& request)
      : samples_(request.inputs[0].shape[0]), classes_(request.inputs[0].shape[1]) {}

  void forward(const ForwardCall& call) override {
    const auto* labels = static_cast<const std::int32_t*>(call.inputs[1]);
    for (std::int64_t s = 0; s < samples_; ++s) {
      const float* x = static_cast<const float*>(call.inputs[0]) + s * classes_;
      float other = -std::numeric_limits<float>::infinity();
      for (std::int64_t k = 0; k < classes_; ++k) {
        if (k != labels[s]) other = std::max(other, x[k]);
      }
      static_cast<float*>(call.outputs[0])[s] = x[labels[s]] - other;
      static_cast<float*>(call.outputs[1])[s] = 1;
    }
  }

 private:
  std::int64_t samples_, classes_;
};

OpDef margin() {
  OpDef op;
  op.name = "margin";
  op.doc = "by how much the right class's score leads the best of the others";
  op.kind = OpKind::metric;  // reported as the sum of the values over the sum of the counts
  op.higher_is_better = true;
  op.min_inputs = op.max_inputs = 2;
  op.constant_inputs = {0, 1};
  op.differentiable = false;
  op.infer = [](const Attributes&, std::span<const TensorSpec> inputs) {
    const TensorSpec of_samples{DType::f32, {inputs[0].shape[0]}};
    return Signature{.outputs = {of_samples, of_samples}, .parameters = {}, .states = {}, .saved = {}};
  };
  op.cost = [](const Attributes&, std::span<const TensorSpec> inputs, const Signature&) {
    return Cost{.forward_flops = static_cast<double>(inputs[0].elements()), .backward_flops = 0};
  };
  op.kernels[DeviceKind::cpu] = [](const KernelRequest& request) { return std::make_unique<Margin>(request); };
  return op;
}

}  // namespace

int main() {
  return run_example([] {
    Registries registries = Registries::built_in();
    registries.ops.add(margin());
    const JobFile job = digits(registries, {"metrics=[accuracy, margin]", "early_stop={metric: margin, patience: 2}"});
    return same_bits([&](Communicator& communicator) { return train_job(job, communicator, registries); });
  });
}
