// gelu: x * Phi(x), where Phi is the normal distribution, exact (by erf) or by the usual tanh approximation.
// Saved: the slope at x.
#include "ops/activation.hpp"
#include "ops/registry.hpp"

namespace lockstep::ops {

std::unique_ptr<Kernel> make_gelu_cpu(const KernelRequest& request);

OpDef make_gelu() {
  OpDef op = activation("gelu", "x times the normal distribution at x", false);
  op.attributes = {{.name = "approximate",
                    .kind = AttributeKind::text,
                    .doc = "tanh: as in GPT-2; none: exact",
                    .default_value = std::string("tanh"),
                    .choices = {"tanh", "none"}}};
  op.shorthand = "approximate";
  op.backward_reads = {};
  op.infer = [infer = op.infer](const Attributes& attributes, std::span<const TensorSpec> inputs) {
    Signature signature = infer(attributes, inputs);
    signature.saved = {inputs[0]};
    return signature;
  };
  op.kernels[DeviceKind::cpu] = make_gelu_cpu;
  return op;
}

}  // namespace lockstep::ops
