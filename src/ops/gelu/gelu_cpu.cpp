// (1 + tanh(u)) / 2 is sigmoid(2u), which needs one exponential and one division.
#include "backend/cpu/vector_math.hpp"
#include "core/vectorize.hpp"
#include "ops/activation.hpp"

namespace lockstep::ops {

namespace {

constexpr float kTwice = 1.5957691216F;  // 2 * sqrt(2 / pi)
constexpr float kCube = 0.044715F;
constexpr float kHalfRoot = 0.70710678119F;      // 1 / sqrt(2)
constexpr float kDensity = 0.39894228040F;       // 1 / sqrt(2 pi)

/// The approximation of Phi(x).
LOCKSTEP_INLINE float phi_tanh(float x) { return backend::vector_sigmoid(kTwice * (x + kCube * (x * x * x))); }
LOCKSTEP_INLINE float phi_exact(float x) { return 0.5F + 0.5F * backend::vector_erf(x * kHalfRoot); }

LOCKSTEP_VECTORIZED void forward_tanh(const float* x, float* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = x[i] * phi_tanh(x[i]);
}

LOCKSTEP_VECTORIZED void backward_tanh(const float* x, const float* dy, float* dx, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const float phi = phi_tanh(x[i]);
    const float slope = kTwice * (1.0F + (3.0F * kCube) * (x[i] * x[i]));
    dx[i] = dy[i] * (phi + x[i] * (phi * (1.0F - phi)) * slope);
  }
}

LOCKSTEP_VECTORIZED void forward_exact(const float* x, float* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = x[i] * phi_exact(x[i]);
}

LOCKSTEP_VECTORIZED void backward_exact(const float* x, const float* dy, float* dx, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const float density = kDensity * backend::vector_exp(-0.5F * (x[i] * x[i]));
    dx[i] = dy[i] * (phi_exact(x[i]) + x[i] * density);
  }
}

}  // namespace

std::unique_ptr<Kernel> make_gelu_cpu(const KernelRequest& request) {
  const bool exact = request.attributes->text("approximate") == "none";
  return std::make_unique<ActivationCpu>(request.outputs[0].elements(), false, exact ? forward_exact : forward_tanh,
                                         exact ? backward_exact : backward_tanh);
}

}  // namespace lockstep::ops
