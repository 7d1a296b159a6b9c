// add: the sum of two or more tensors of one shape, from left to right.
#include "lockstep/op.hpp"
#include "ops/equal_inputs.hpp"
#include "ops/registry.hpp"

namespace lockstep::ops {

std::unique_ptr<Kernel> make_add_cpu(const KernelRequest& request);

OpDef make_add() {
  OpDef op;
  op.name = "add";
  op.doc = "the sum of its inputs";
  op.passes_gradient = true;
  op.min_inputs = 2;
  op.max_inputs = -1;
  op.in_place = {.forward = true, .over_gradient = true};
  op.infer = [](const Attributes&, std::span<const TensorSpec> inputs) { return equal_inputs("add", inputs); };
  op.cost = [](const Attributes&, std::span<const TensorSpec> inputs, const Signature&) {
    const auto n = static_cast<double>(inputs[0].elements()) * static_cast<double>(inputs.size() - 1);
    return Cost{n, 0};
  };
  op.kernels[DeviceKind::cpu] = make_add_cpu;
  op.epilogues = {{DeviceKind::cpu, {"relu"}}, {DeviceKind::cuda, {"relu"}}};
  return op;
}

}  // namespace lockstep::ops
