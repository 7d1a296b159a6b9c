// silu: x / (1 + e^-x).
#include "ops/activation.hpp"
#include "ops/registry.hpp"

namespace lockstep::ops {

std::unique_ptr<Kernel> make_silu_cpu(const KernelRequest& request);

OpDef make_silu() {
  OpDef op = activation("silu", "x / (1 + e^-x)", false);
  op.kernels[DeviceKind::cpu] = make_silu_cpu;
  return op;
}

}  // namespace lockstep::ops
