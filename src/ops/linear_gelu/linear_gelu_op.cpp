// linear_gelu: pre = x * weight^T + bias as linear makes it, and y = gelu(pre) by tanh. Lowering makes it where
// gelu_linear reads both: that makes the gradient of pre, and none comes for y.
#include "lockstep/op.hpp"
#include "ops/registry.hpp"

namespace lockstep::ops {

OpDef make_linear();
std::unique_ptr<Kernel> make_linear_gelu_cpu(const KernelRequest& request);

OpDef make_linear_gelu() {
  OpDef op = make_linear();
  op.name = "linear_gelu";
  op.doc = "linear, and gelu of it beside it";
  op.kind = OpKind::fused;
  op.infer = [infer = op.infer](const Attributes& attributes, std::span<const TensorSpec> inputs) {
    Signature signature = infer(attributes, inputs);
    signature.outputs.push_back(signature.outputs[0]);
    return signature;
  };
  op.kernels = {{DeviceKind::cpu, make_linear_gelu_cpu}};
  op.takes_low_precision = {};
  return op;
}

}  // namespace lockstep::ops
