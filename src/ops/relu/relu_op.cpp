// relu: y = max(x, 0).
#include "lockstep/op.hpp"
#include "ops/elementwise.hpp"
#include "ops/registry.hpp"

namespace lockstep::ops {

std::unique_ptr<Kernel> make_relu_cpu(const KernelRequest& request);

OpDef make_relu() {
  OpDef op;
  op.name = "relu";
  op.doc = "max(x, 0)";
  op.backward_reads = {.inputs = false, .outputs = true};
  op.in_place = {.forward = true, .over_gradient = true};
  op.infer = same_shape;
  op.cost = elementwise_cost<1, 1>;
  op.kernels[DeviceKind::cpu] = make_relu_cpu;
  return op;
}

}  // namespace lockstep::ops
