// tanh: the hyperbolic tangent.
#include "ops/activation.hpp"
#include "ops/registry.hpp"

namespace lockstep::ops {

std::unique_ptr<Kernel> make_tanh_cpu(const KernelRequest& request);

OpDef make_tanh() {
  OpDef op = activation("tanh", "the hyperbolic tangent", true);
  op.kernels[DeviceKind::cpu] = make_tanh_cpu;
  return op;
}

}  // namespace lockstep::ops
