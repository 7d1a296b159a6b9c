#include "core/vectorize.hpp"
#include "device/cpu/lanes.hpp"
#include "ops/activation.hpp"

namespace lockstep::ops {

namespace {

using device::Lanes;

LOCKSTEP_VECTORIZED void silu_forward(const float* x, float* y, std::int64_t n) {
  device::map(x, y, n, [](const Lanes& v) LOCKSTEP_INLINE_LAMBDA -> Lanes { return v * device::vector_sigmoid(v); });
}

LOCKSTEP_VECTORIZED void silu_backward(const float* x, const float* dy, float* dx, std::int64_t n) {
  device::map(x, dy, dx, n, [](const Lanes& v, const Lanes& dv) LOCKSTEP_INLINE_LAMBDA -> Lanes {
    const Lanes s = device::vector_sigmoid(v);
    return dv * (s + v * s * (1.0F - s));
  });
}

}  // namespace

std::unique_ptr<Kernel> make_silu_cpu(const KernelRequest& request) {
  return std::make_unique<ActivationCpu>(request.outputs[0].elements(), false, silu_forward, silu_backward);
}

}  // namespace lockstep::ops
