// gelu: x * Phi(x), where Phi is the normal distribution, exact (by erf) or by the usual tanh approximation. Saved: the
// slope at x. Training computes it in forward, where Phi(x) is available, and backward only multiplies by it.
#include <memory>

#include "core/vectorize.hpp"
#include "device/cpu/lanes.hpp"
#include "ops/elementwise.hpp"
#include "ops/gelu/gelu_formulas.hpp"
#include "ops/onnx_scope.hpp"
#include "ops/vectors.hpp"

namespace lockstep::ops {

namespace {

using device::kLanes;
using device::Lanes;

template <class Phi>
LOCKSTEP_INLINE void gelu_forward(const float* x, float* y, std::int64_t n) {
  device::map(x, y, n, [](const Lanes& v) LOCKSTEP_INLINE_LAMBDA -> Lanes { return v * Phi::phi(v); });
}

template <class Phi>
LOCKSTEP_INLINE void forward_with_slope(const float* x, float* y, float* slope, std::int64_t n) {
  for (std::int64_t i = 0; i < n; i += kLanes) {
    const std::int64_t count = n - i < kLanes ? n - i : kLanes;
    Lanes v;
    device::load_some(v, x + i, count);
    const Lanes phi = Phi::phi(v);
    device::store_some(y + i, v * phi, count);
    device::store_some(slope + i, Phi::slope(v, phi), count);
  }
}

LOCKSTEP_VECTORIZED void forward_tanh(const float* x, float* y, std::int64_t n) {
  gelu_forward<GeluTanh>(x, y, n);
}
LOCKSTEP_VECTORIZED void forward_exact(const float* x, float* y, std::int64_t n) {
  gelu_forward<GeluExact>(x, y, n);
}
LOCKSTEP_VECTORIZED void training_tanh(const float* x, float* y, float* slope, std::int64_t n) {
  forward_with_slope<GeluTanh>(x, y, slope, n);
}
LOCKSTEP_VECTORIZED void training_exact(const float* x, float* y, float* slope, std::int64_t n) {
  forward_with_slope<GeluExact>(x, y, slope, n);
}

class GeluCpu final : public Kernel {
 public:
  GeluCpu(std::int64_t n, bool exact, bool training) : n_(n), exact_(exact), training_(training) {}

  void forward(const ForwardCall& call) override {
    const float* x = input(call);
    if (training_) {
      (exact_ ? training_exact : training_tanh)(x, output(call), static_cast<float*>(call.saved[0]), n_);
    } else {
      (exact_ ? forward_exact : forward_tanh)(x, output(call), n_);
    }
  }

  void backward(const BackwardCall& call) override {
    if (input_gradient(call) == nullptr) return;
    multiply(static_cast<const float*>(call.saved[0]), output_gradient(call), input_gradient(call), n_);
  }

 private:
  std::int64_t n_;
  bool exact_, training_;
};

}  // namespace

std::unique_ptr<Kernel> make_gelu_cpu(const KernelRequest& request) {
  return std::make_unique<GeluCpu>(request.outputs[0].elements(), request.attributes->text("approximate") == "none",
                                   request.mode == Mode::training);
}

OpDef make_gelu() {
  OpDef op;
  op.name = "gelu";
  op.doc = "x times the normal distribution at x";
  op.attributes = {{.name = "approximate",
                    .kind = AttributeKind::text,
                    .doc = "tanh: as in GPT-2; none: exact",
                    .default_value = std::string("tanh"),
                    .choices = {"tanh", "none"}}};
  op.shorthand = "approximate";
  op.in_place = {.forward = true, .over_gradient = true, .over_input = true};
  op.infer = [](const Attributes&, std::span<const TensorSpec> inputs) {
    Signature signature = same_floats("gelu", inputs[0]);
    signature.saved = {inputs[0]};
    return signature;
  };
  op.cost = elementwise_cost<20, 25>;
  op.kernels[DeviceKind::cpu] = make_gelu_cpu;
  return op;
}

void gelu_to_onnx(OnnxScope& scope) {
  scope.elementwise("Gelu", {{"approximate", scope.attributes().text("approximate")}});
}

}  // namespace lockstep::ops
