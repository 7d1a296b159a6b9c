// A loss: ln cosh((prediction - target) / width) * width^2, about half the square of small differences and about
// width * |difference| of large ones, smooth in between.
#include <cmath>
#include <numbers>

#include "parts.hpp"

namespace {

using namespace lockstep;

class LogCosh final : public Kernel {
 public:
  explicit LogCosh(const KernelRequest& request)
      : samples_(request.outputs[0].shape[0]),
        size_(samples_ == 0 ? 0 : request.inputs[0].elements() / samples_),
        width_(static_cast<float>(request.attributes->number("width"))) {}

  void forward(const ForwardCall& call) override {
    const auto* x = static_cast<const float*>(call.inputs[0]);
    const auto* target = static_cast<const float*>(call.inputs[1]);
    for (std::int64_t s = 0, i = 0; s < samples_; ++s) {
      float sum = 0;
      for (std::int64_t last = i + size_; i < last; ++i) {
        const float d = std::abs(x[i] - target[i]) / width_;
        sum += d + std::log1p(std::exp(-2 * d)) - std::numbers::ln2_v<float>;
      }
      static_cast<float*>(call.outputs[0])[s] = sum * width_ * width_;
      static_cast<float*>(call.outputs[1])[s] = static_cast<float>(size_);
    }
  }

  // The gradient of the sum of the losses: the division by the sum of counts happens once, over all ranks.
  void backward(const BackwardCall& call) override {
    const auto* x = static_cast<const float*>(call.inputs[0]);
    const auto* target = static_cast<const float*>(call.inputs[1]);
    auto* dx = static_cast<float*>(call.input_gradients[0]);
    for (std::int64_t i = 0; i < samples_ * size_; ++i) dx[i] = width_ * std::tanh((x[i] - target[i]) / width_);
  }

 private:
  std::int64_t samples_, size_;
  float width_;
};

}  // namespace

OpDef log_cosh() {
  OpDef op;
  op.name = "log_cosh";
  op.doc = "the mean of ln cosh of differences, a parabola near 0 and straight lines beyond `width`";
  op.kind = OpKind::loss;
  op.min_inputs = op.max_inputs = 2;
  op.constant_inputs = {1};
  op.attributes = {{.name = "width",
                    .kind = AttributeKind::number,
                    .doc = "where the parabola ends",
                    .default_value = 1.0,
                    .minimum = 0,
                    .above_minimum = true}};
  op.shorthand = "width";
  op.backward_reads = {.inputs = true, .outputs = false};
  op.infer = [](const Attributes&, std::span<const TensorSpec> inputs) { return of_elements("log_cosh", inputs); };
  op.cost = [](const Attributes&, std::span<const TensorSpec> inputs, const Signature&) {
    const auto elements = static_cast<double>(inputs[0].elements());
    return Cost{.forward_flops = 40 * elements, .backward_flops = 30 * elements};
  };
  op.kernels[DeviceKind::cpu] = [](const KernelRequest& request) { return std::make_unique<LogCosh>(request); };
  return op;
}
