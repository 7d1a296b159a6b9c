// A custom op: leaky_relu, x where x > 0, else slope * x. A list of layers may use it like any other.
#include <lockstep/op.hpp>

#include "example.hpp"

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

OpDef leaky_relu() {
  OpDef op;
  op.name = "leaky_relu";
  op.doc = "x where x > 0, else slope * x";
  op.attributes = {{.name = "slope",
                    .kind = AttributeKind::number,
                    .doc = "what negative values are multiplied by",
                    .default_value = 0.01}};
  op.shorthand = "slope";                                  // `leaky_relu: 0.1`
  op.backward_reads = {.inputs = true, .outputs = false};  // only what backward reads is kept
  op.infer = [](const Attributes&, std::span<const TensorSpec> inputs) {
    return Signature{.outputs = {inputs[0]}, .parameters = {}, .states = {}, .saved = {}};
  };
  op.cost = [](const Attributes&, std::span<const TensorSpec> inputs, const Signature&) {
    const auto elements = static_cast<double>(inputs[0].elements());
    return Cost{.forward_flops = 2 * elements, .backward_flops = 2 * elements};
  };
  op.kernels[DeviceKind::cpu] = [](const KernelRequest& request) { return std::make_unique<LeakyRelu>(request); };
  return op;
}

}  // namespace

int main() {
  return run_example([] {
    Registries registries = Registries::built_in();
    registries.ops.add(leaky_relu());
    const JobFile job = digits(registries, {"model.layers=[flatten, {linear: 32}, {leaky_relu: 0.1}, {linear: 10}]"});
    return same_bits([&](Communicator& communicator) { return train_job(job, communicator, registries); });
  });
}
