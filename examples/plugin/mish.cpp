// An op: mish, x * tanh(softplus(x)), an activation (D. Misra, "Mish: A Self Regularized Non-Monotonic Activation
// Function", 2019).
#include <cmath>

#include "parts.hpp"

namespace {

using namespace lockstep;

/// ln(1 + e^x), without overflow.
float softplus(float x) {
  return std::max(x, 0.0F) + std::log1p(std::exp(-std::abs(x)));
}

class Mish final : public Kernel {
 public:
  explicit Mish(const KernelRequest& request) : elements_(request.outputs[0].elements()) {}

  void forward(const ForwardCall& call) override {
    const auto* x = static_cast<const float*>(call.inputs[0]);
    auto* y = static_cast<float*>(call.outputs[0]);
    for (std::int64_t i = 0; i < elements_; ++i) y[i] = x[i] * std::tanh(softplus(x[i]));
  }

  // With t = tanh(softplus(x)): t + x (1 - t^2) sigmoid(x).
  void backward(const BackwardCall& call) override {
    const auto* x = static_cast<const float*>(call.inputs[0]);
    const auto* dy = static_cast<const float*>(call.output_gradients[0]);
    auto* dx = static_cast<float*>(call.input_gradients[0]);
    for (std::int64_t i = 0; i < elements_; ++i) {
      const float t = std::tanh(softplus(x[i])), sigmoid = 1 / (1 + std::exp(-x[i]));
      dx[i] = dy[i] * (t + x[i] * (1 - t * t) * sigmoid);
    }
  }

 private:
  std::int64_t elements_;
};

}  // namespace

OpDef mish() {
  OpDef op;
  op.name = "mish";
  op.doc = "x * tanh(softplus(x))";
  op.backward_reads = {.inputs = true, .outputs = false};  // only what backward reads is kept
  op.infer = [](const Attributes&, std::span<const TensorSpec> inputs) {
    return Signature{.outputs = {inputs[0]}, .parameters = {}, .states = {}, .saved = {}};
  };
  op.cost = [](const Attributes&, std::span<const TensorSpec> inputs, const Signature&) {
    const auto elements = static_cast<double>(inputs[0].elements());
    return Cost{.forward_flops = 40 * elements, .backward_flops = 60 * elements};
  };
  op.kernels[DeviceKind::cpu] = [](const KernelRequest& request) { return std::make_unique<Mish>(request); };
  return op;
}
