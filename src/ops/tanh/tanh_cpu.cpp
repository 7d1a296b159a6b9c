#include "core/vectorize.hpp"
#include "device/cpu/lanes.hpp"
#include "ops/activation.hpp"

namespace lockstep::ops {

namespace {

using device::Lanes;

LOCKSTEP_VECTORIZED void tanh_forward(const float* x, float* y, std::int64_t n) {
  device::map(x, y, n, [](const Lanes& v) LOCKSTEP_INLINE_LAMBDA -> Lanes { return device::vector_tanh(v); });
}

LOCKSTEP_VECTORIZED void tanh_backward(const float* y, const float* dy, float* dx, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) dx[i] = dy[i] * (1.0F - y[i] * y[i]);
}

}  // namespace

std::unique_ptr<Kernel> make_tanh_cpu(const KernelRequest& request) {
  return std::make_unique<ActivationCpu>(request.outputs[0].elements(), true, tanh_forward, tanh_backward);
}

}  // namespace lockstep::ops
