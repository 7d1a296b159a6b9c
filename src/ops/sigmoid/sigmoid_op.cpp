// sigmoid: 1 / (1 + e^-x).
#include "ops/activation.hpp"
#include "ops/registry.hpp"

namespace lockstep::ops {

std::unique_ptr<Kernel> make_sigmoid_cpu(const KernelRequest& request);

OpDef make_sigmoid() {
  OpDef op = activation("sigmoid", "1 / (1 + e^-x)", true);
  op.kernels[DeviceKind::cpu] = make_sigmoid_cpu;
  return op;
}

}  // namespace lockstep::ops
