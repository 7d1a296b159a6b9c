// gelu_linear: z = y * weight^T + bias as linear makes it, of y = gelu(pre) by tanh. Lowering makes it where
// linear_gelu gives both: so the gradient of y is never written, only that of pre.
#include <fmt/format.h>

#include "lockstep/error.hpp"
#include "lockstep/op.hpp"
#include "ops/registry.hpp"

namespace lockstep::ops {

OpDef make_linear();
std::unique_ptr<Kernel> make_gelu_linear_cpu(const KernelRequest& request);

OpDef make_gelu_linear() {
  OpDef op = make_linear();
  op.name = "gelu_linear";
  op.doc = "linear of what gelu made, whose gradient goes on to gelu's input";
  op.kind = OpKind::fused;
  op.min_inputs = op.max_inputs = 2;
  op.constant_inputs = {0};
  op.infer = [infer = op.infer](const Attributes& attributes, std::span<const TensorSpec> inputs) {
    if (inputs[0] != inputs[1]) {
      throw Error(ExitCode::configuration,
                  fmt::format("gelu_linear: expected two inputs of one shape and type, found {} and {}",
                              to_string(inputs[0].shape), to_string(inputs[1].shape)));
    }
    return infer(attributes, inputs.first(1));
  };
  op.kernels = {{DeviceKind::cpu, make_gelu_linear_cpu}};
  op.takes_low_precision = {};
  return op;
}

}  // namespace lockstep::ops
