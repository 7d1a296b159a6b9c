// mul: the elementwise product of two or more tensors of one shape, from left to right.
#include "lockstep/op.hpp"
#include "ops/equal_inputs.hpp"
#include "ops/registry.hpp"

namespace lockstep::ops {

std::unique_ptr<Kernel> make_mul_cpu(const KernelRequest& request);

OpDef make_mul() {
  OpDef op;
  op.name = "mul";
  op.doc = "the elementwise product of its inputs";
  op.min_inputs = 2;
  op.max_inputs = -1;
  op.backward_reads = {.inputs = true, .outputs = false};
  op.in_place = {.forward = true};
  op.infer = [](const Attributes&, std::span<const TensorSpec> inputs) { return equal_inputs("mul", inputs); };
  op.cost = [](const Attributes&, std::span<const TensorSpec> inputs, const Signature&) {
    const auto n = static_cast<double>(inputs[0].elements()), count = static_cast<double>(inputs.size());
    return Cost{n * (count - 1), n * count * (count - 1)};
  };
  op.kernels[DeviceKind::cpu] = make_mul_cpu;
  return op;
}

}  // namespace lockstep::ops
