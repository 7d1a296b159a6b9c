// The ops of the activations in the table, and their CPU kernels.
#include <memory>
#include <string>

#include "device/cpu/lanes.hpp"
#include "ops/activations/activations.hpp"
#include "ops/elementwise.hpp"
#include "ops/onnx_scope.hpp"

namespace lockstep::ops {

namespace {

using device::Lanes;

template <class Formula>
LOCKSTEP_VECTORIZED void apply(Formula formula, const float* x, float* y, std::int64_t n) {
  if constexpr (Formula::kOverLanes) {
    device::map(x, y, n, [formula](const Lanes& v) LOCKSTEP_INLINE_LAMBDA -> Lanes { return formula.of(v); });
  } else {
    for (std::int64_t i = 0; i < n; ++i) y[i] = formula.of(x[i]);
  }
}

/// `seen`: the output or the input.
template <class Formula>
LOCKSTEP_VECTORIZED void apply_gradient(Formula formula, const float* seen, const float* dy, float* dx,
                                        std::int64_t n) {
  if constexpr (Formula::kOverLanes) {
    device::map(seen, dy, dx, n, [formula](const Lanes& v, const Lanes& dv) LOCKSTEP_INLINE_LAMBDA -> Lanes {
      return formula.gradient(v, dv);
    });
  } else {
    for (std::int64_t i = 0; i < n; ++i) dx[i] = formula.gradient(seen[i], dy[i]);
  }
}

template <class Formula>
class ActivationCpu final : public Kernel {
 public:
  explicit ActivationCpu(const KernelRequest& request)
      : formula_(formula_of<Formula>(*request.attributes)), n_(request.outputs[0].elements()) {}

  void forward(const ForwardCall& call) override { apply(formula_, input(call), output(call), n_); }
  void backward(const BackwardCall& call) override {
    if (input_gradient(call) == nullptr) return;
    const float* seen = Formula::kReadsOutput ? static_cast<const float*>(call.outputs[0]) : input(call);
    apply_gradient(formula_, seen, output_gradient(call), input_gradient(call), n_);
  }

 private:
  Formula formula_;
  std::int64_t n_;
};

template <class Formula>
OpDef activation_op(const std::string& name) {
  OpDef op;
  op.name = name;
  op.doc = Formula::kDoc;
  if constexpr (kHasSetting<Formula>) {
    op.attributes = {Formula::setting()};
    op.shorthand = op.attributes[0].name;
  }
  op.backward_reads = {.inputs = !Formula::kReadsOutput, .outputs = Formula::kReadsOutput};
  op.in_place = {.forward = true, .over_gradient = true, .over_input = !Formula::kReadsOutput};
  op.infer = [name](const Attributes&, std::span<const TensorSpec> inputs) { return same_floats(name, inputs[0]); };
  op.cost = elementwise_cost<Formula::kCost, Formula::kGradientCost>;
  op.kernels[DeviceKind::cpu] = kernel_of<ActivationCpu<Formula>>;
  return op;
}

}  // namespace

#define LOCKSTEP_MAKE_ACTIVATION(Formula, op) \
  OpDef make_##op() {                         \
    return activation_op<Formula>(#op);       \
  }
LOCKSTEP_ACTIVATIONS(LOCKSTEP_MAKE_ACTIVATION)
#undef LOCKSTEP_MAKE_ACTIVATION

void elu_to_onnx(OnnxScope& scope) {
  scope.elementwise("Elu", {{"alpha", static_cast<float>(scope.attributes().number("alpha"))}});
}

void hardswish_to_onnx(OnnxScope& scope) {
  scope.elementwise("HardSwish");
}

void leaky_relu_to_onnx(OnnxScope& scope) {
  scope.elementwise("LeakyRelu", {{"alpha", static_cast<float>(scope.attributes().number("slope"))}});
}

void relu_to_onnx(OnnxScope& scope) {
  scope.elementwise("Relu");
}

void relu6_to_onnx(OnnxScope& scope) {
  const Layout layout = scope.layout();
  scope.result(scope.add("Clip", {scope.input(0, layout), scope.number(0.0F), scope.number(6.0F)}), layout);
}

void sigmoid_to_onnx(OnnxScope& scope) {
  scope.elementwise("Sigmoid");
}

void silu_to_onnx(OnnxScope& scope) {
  const Layout layout = scope.layout();
  const std::string x = scope.input(0, layout);
  scope.result(scope.add("Mul", {x, scope.add("Sigmoid", {x})}), layout);
}

void softplus_to_onnx(OnnxScope& scope) {
  scope.elementwise("Softplus");
}

void tanh_to_onnx(OnnxScope& scope) {
  scope.elementwise("Tanh");
}

}  // namespace lockstep::ops
