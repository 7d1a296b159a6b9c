#include "backend/cpu/vector_math.hpp"
#include "core/vectorize.hpp"
#include "ops/activation.hpp"

namespace lockstep::ops {

namespace {

LOCKSTEP_VECTORIZED void forward(const float* x, float* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = x[i] * backend::vector_sigmoid(x[i]);
}

LOCKSTEP_VECTORIZED void backward(const float* x, const float* dy, float* dx, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const float s = backend::vector_sigmoid(x[i]);
    dx[i] = dy[i] * (s + x[i] * s * (1.0F - s));
  }
}

}  // namespace

std::unique_ptr<Kernel> make_silu_cpu(const KernelRequest& request) {
  return std::make_unique<ActivationCpu>(request.outputs[0].elements(), false, forward, backward);
}

}  // namespace lockstep::ops
