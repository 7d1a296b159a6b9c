// A metric: the mean absolute error in percent of the target (MAPE). Less is better.
#include <cmath>

#include "parts.hpp"

namespace {

using namespace lockstep;

/// Targets of 0 have no percentage: they do not count.
class PercentError final : public Kernel {
 public:
  explicit PercentError(const KernelRequest& request)
      : samples_(request.outputs[0].shape[0]), size_(samples_ == 0 ? 0 : request.inputs[0].elements() / samples_) {}

  void forward(const ForwardCall& call) override {
    const auto* x = static_cast<const float*>(call.inputs[0]);
    const auto* target = static_cast<const float*>(call.inputs[1]);
    for (std::int64_t s = 0, i = 0; s < samples_; ++s) {
      float sum = 0, count = 0;
      for (std::int64_t last = i + size_; i < last; ++i) {
        if (target[i] == 0) continue;
        sum += 100 * std::abs((x[i] - target[i]) / target[i]);
        count += 1;
      }
      static_cast<float*>(call.outputs[0])[s] = sum;
      static_cast<float*>(call.outputs[1])[s] = count;
    }
  }

 private:
  std::int64_t samples_, size_;
};

}  // namespace

OpDef percent_error() {
  OpDef op;
  op.name = "percent_error";
  op.doc = "the mean absolute error in percent of the target";
  op.kind = OpKind::metric;  // reported as the sum of the values over the sum of the counts
  op.higher_is_better = false;
  op.min_inputs = op.max_inputs = 2;
  op.constant_inputs = {0, 1};
  op.differentiable = false;
  op.infer = [](const Attributes&, std::span<const TensorSpec> inputs) { return of_elements("percent_error", inputs); };
  op.cost = [](const Attributes&, std::span<const TensorSpec> inputs, const Signature&) {
    return Cost{.forward_flops = 4 * static_cast<double>(inputs[0].elements()), .backward_flops = 0};
  };
  op.kernels[DeviceKind::cpu] = [](const KernelRequest& request) { return std::make_unique<PercentError>(request); };
  return op;
}
