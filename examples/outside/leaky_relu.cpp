#include "leaky_relu.hpp"

namespace {

using namespace lockstep;

class LeakyRelu final : public Kernel {
 public:
  explicit LeakyRelu(const KernelRequest& request)
      : elements_(request.outputs[0].elements()), slope_(static_cast<float>(request.attributes->number("slope"))) {}

  void forward(const ForwardCall& call) override {
    const auto* x = static_cast<const float*>(call.inputs[0]);
    auto* y = static_cast<float*>(call.outputs[0]);
    for (std::int64_t i = 0; i < elements_; ++i) y[i] = x[i] > 0 ? x[i] : slope_ * x[i];
  }

  void backward(const BackwardCall& call) override {
    const auto* x = static_cast<const float*>(call.inputs[0]);
    const auto* dy = static_cast<const float*>(call.output_gradients[0]);
    auto* dx = static_cast<float*>(call.input_gradients[0]);
    for (std::int64_t i = 0; i < elements_; ++i) dx[i] = x[i] > 0 ? dy[i] : slope_ * dy[i];
  }

 private:
  std::int64_t elements_;
  float slope_;
};

Signature infer(const Attributes&, std::span<const TensorSpec> inputs) {
  Signature signature;
  signature.outputs.push_back(inputs[0]);
  return signature;
}

Cost cost(const Attributes&, std::span<const TensorSpec> inputs, const Signature&) {
  const auto elements = static_cast<double>(inputs[0].elements());
  return {.forward_flops = 2 * elements, .backward_flops = 2 * elements};
}

}  // namespace

OpDef make_leaky_relu() {
  OpDef op;
  op.name = "leaky_relu";
  op.doc = "x where x > 0, else slope * x";
  AttributeSpec slope;
  slope.name = "slope";
  slope.kind = AttributeKind::number;
  slope.doc = "what negative values are multiplied by";
  slope.default_value = 0.01;
  op.attributes = {slope};
  op.shorthand = "slope";  // `leaky_relu: 0.1` in a list of layers
  op.backward_reads = {.inputs = true, .outputs = false};
  op.infer = infer;
  op.cost = cost;
  op.kernels[DeviceKind::cpu] = [](const KernelRequest& request) { return std::make_unique<LeakyRelu>(request); };
  return op;
}
