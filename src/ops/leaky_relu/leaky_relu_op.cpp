// leaky_relu and elu, and their kernels for CPUs.
#include <memory>
#include <string>

#include "device/cpu/lanes.hpp"
#include "ops/elementwise.hpp"
#include "ops/leaky_relu/leaky_relu.hpp"

namespace lockstep::ops {

namespace {

using device::Lanes;

template <class Formula>
LOCKSTEP_VECTORIZED void apply_with_settings(Formula formula, const float* x, float* y, std::int64_t n) {
  device::map(x, y, n, [formula](const Lanes& v) LOCKSTEP_INLINE_LAMBDA -> Lanes { return formula.of(v); });
}

/// `seen`: the output or the input.
template <class Formula>
LOCKSTEP_VECTORIZED void gradient_with_settings(Formula formula, const float* seen, const float* dy, float* dx,
                                                std::int64_t n) {
  device::map(seen, dy, dx, n, [formula](const Lanes& v, const Lanes& dv) LOCKSTEP_INLINE_LAMBDA -> Lanes {
    return formula.gradient(v, dv);
  });
}

template <class Formula>
class SettingActivationCpu final : public Kernel {
 public:
  explicit SettingActivationCpu(const KernelRequest& request)
      : formula_(*request.attributes), n_(request.outputs[0].elements()) {}

  void forward(const ForwardCall& call) override { apply_with_settings(formula_, input(call), output(call), n_); }
  void backward(const BackwardCall& call) override {
    if (input_gradient(call) == nullptr) return;
    const float* seen = Formula::kReadsOutput ? static_cast<const float*>(call.outputs[0]) : input(call);
    gradient_with_settings(formula_, seen, output_gradient(call), input_gradient(call), n_);
  }

 private:
  Formula formula_;
  std::int64_t n_;
};

template <class Formula>
OpDef setting_activation(const std::string& name, const std::string& doc, AttributeSpec setting) {
  OpDef op;
  op.name = name;
  op.doc = doc;
  op.shorthand = setting.name;
  op.attributes = {std::move(setting)};
  op.backward_reads = {.inputs = !Formula::kReadsOutput, .outputs = Formula::kReadsOutput};
  op.in_place = {.forward = true, .over_gradient = true, .over_input = !Formula::kReadsOutput};
  op.infer = [name](const Attributes&, std::span<const TensorSpec> inputs) { return same_floats(name, inputs[0]); };
  op.cost = elementwise_cost<Formula::kCost, Formula::kGradientCost>;
  op.kernels[DeviceKind::cpu] = kernel_of<SettingActivationCpu<Formula>>;
  return op;
}

}  // namespace

OpDef make_leaky_relu() {
  return setting_activation<LeakyRelu>("leaky_relu", "x above 0, below it a share of x",
                                       {.name = "slope",
                                        .kind = AttributeKind::number,
                                        .doc = "what x below 0 is multiplied by; Keras has 0.3",
                                        .default_value = 0.01,
                                        .minimum = 0});
}

OpDef make_elu() {
  return setting_activation<Elu>("elu", "x above 0, below it alpha (e^x - 1)",
                                 {.name = "alpha",
                                  .kind = AttributeKind::number,
                                  .doc = "minus this is where it ends",
                                  .default_value = 1.0,
                                  .minimum = 0});
}

}  // namespace lockstep::ops
