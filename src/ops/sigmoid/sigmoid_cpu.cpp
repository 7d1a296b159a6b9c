#include "core/vectorize.hpp"
#include "device/cpu/lanes.hpp"
#include "ops/activation.hpp"

namespace lockstep::ops {

namespace {

using device::Lanes;

LOCKSTEP_VECTORIZED void sigmoid_forward(const float* x, float* y, std::int64_t n) {
  device::map(x, y, n, [](const Lanes& v) LOCKSTEP_INLINE_LAMBDA -> Lanes { return device::vector_sigmoid(v); });
}

LOCKSTEP_VECTORIZED void sigmoid_backward(const float* y, const float* dy, float* dx, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) dx[i] = dy[i] * (y[i] * (1.0F - y[i]));
}

}  // namespace

std::unique_ptr<Kernel> make_sigmoid_cpu(const KernelRequest& request) {
  return std::make_unique<ActivationCpu>(request.outputs[0].elements(), true, sigmoid_forward, sigmoid_backward);
}

}  // namespace lockstep::ops
