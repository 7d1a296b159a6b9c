// A custom op: softsign, x / (width + |x|). A list of layers may use it like any other.
#include <lockstep/gradient_check.hpp>
#include <lockstep/op.hpp>

#include <cmath>
#include <utility>

#include "example.hpp"

namespace {

using namespace lockstep;

class Softsign final : public Kernel {
 public:
  explicit Softsign(const KernelRequest& request)
      : elements_(request.outputs[0].elements()), width_(static_cast<float>(request.attributes->number("width"))) {}

  void forward(const ForwardCall& call) override {
    const auto* x = static_cast<const float*>(call.inputs[0]);
    auto* y = static_cast<float*>(call.outputs[0]);
    for (std::int64_t i = 0; i < elements_; ++i) y[i] = x[i] / (width_ + std::abs(x[i]));
  }

  void backward(const BackwardCall& call) override {
    const auto* x = static_cast<const float*>(call.inputs[0]);
    const auto* dy = static_cast<const float*>(call.output_gradients[0]);
    auto* dx = static_cast<float*>(call.input_gradients[0]);
    for (std::int64_t i = 0; i < elements_; ++i) {
      const float below = width_ + std::abs(x[i]);
      dx[i] = dy[i] * width_ / (below * below);
    }
  }

 private:
  std::int64_t elements_;
  float width_;
};

OpDef softsign() {
  OpDef op;
  op.name = "softsign";
  op.doc = "x / (width + |x|)";
  op.attributes = {{.name = "width",
                    .kind = AttributeKind::number,
                    .doc = "where it is half of what it goes to",
                    .default_value = 1.0}};
  op.shorthand = "width";                                  // `softsign: 0.1`
  op.backward_reads = {.inputs = true, .outputs = false};  // only what backward reads is kept
  op.infer = [](const Attributes&, std::span<const TensorSpec> inputs) {
    return Signature{.outputs = {inputs[0]}, .parameters = {}, .states = {}, .saved = {}};
  };
  op.cost = [](const Attributes&, std::span<const TensorSpec> inputs, const Signature&) {
    const auto elements = static_cast<double>(inputs[0].elements());
    return Cost{.forward_flops = 2 * elements, .backward_flops = 2 * elements};
  };
  op.kernels[DeviceKind::cpu] = [](const KernelRequest& request) { return std::make_unique<Softsign>(request); };
  return op;
}

/// Is backward() the derivative of forward()? On both sides of 0, where |x| has a corner.
void check_softsign() {
  GradientCheck check{.attributes = Attributes({{"width", 0.1}})};
  check.inputs.emplace_back(TensorSpec{DType::f32, {4, 16}});
  float next = 0.25F;
  for (float& x : check.inputs[0].as<float>()) {
    x = next;
    next = next > 0 ? -next : 0.0625F - next;
  }
  std::printf("gradient is right to %.0e\n", check_gradient(softsign(), std::move(check)));
}

}  // namespace

int main() {
  return run_example([] {
    check_softsign();
    Registries registries = Registries::built_in();
    registries.ops.add(softsign());
    const JobFile job = digits(registries, {"model.layers=[flatten, {linear: 32}, {softsign: 0.1}, {linear: 10}]"});
    return same_bits([&](Communicator& communicator) { return train_job(job, communicator, registries); });
  });
}
