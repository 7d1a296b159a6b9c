// (1 + tanh(u)) / 2 is sigmoid(2u), which needs one exponential and one division.
#include "backend/cpu/vector_math.hpp"
#include "core/vectorize.hpp"
#include "ops/activation.hpp"

namespace lockstep::ops {

namespace {

using backend::Lanes;

constexpr float kTwice = 1.5957691216F;  // 2 * sqrt(2 / pi)
constexpr float kCube = 0.044715F;
constexpr float kHalfRoot = 0.70710678119F;  // 1 / sqrt(2)
constexpr float kDensity = 0.39894228040F;   // 1 / sqrt(2 pi)

/// The approximation of Phi(x).
LOCKSTEP_INLINE Lanes phi_tanh(const Lanes& x) {
  return backend::vector_sigmoid((x + x * x * x * kCube) * kTwice);
}
LOCKSTEP_INLINE Lanes phi_exact(const Lanes& x) {
  return backend::vector_erf(x * kHalfRoot) * 0.5F + 0.5F;
}

LOCKSTEP_VECTORIZED void forward_tanh(const float* x, float* y, std::int64_t n) {
  backend::map(x, y, n, [](const Lanes& v) LOCKSTEP_INLINE_LAMBDA -> Lanes { return v * phi_tanh(v); });
}

LOCKSTEP_VECTORIZED void backward_tanh(const float* x, const float* dy, float* dx, std::int64_t n) {
  backend::map(x, dy, dx, n, [](const Lanes& v, const Lanes& dv) LOCKSTEP_INLINE_LAMBDA -> Lanes {
    const Lanes phi = phi_tanh(v);
    const Lanes slope = (v * v * (3.0F * kCube) + 1.0F) * kTwice;
    return dv * (phi + v * (phi * (1.0F - phi)) * slope);
  });
}

LOCKSTEP_VECTORIZED void forward_exact(const float* x, float* y, std::int64_t n) {
  backend::map(x, y, n, [](const Lanes& v) LOCKSTEP_INLINE_LAMBDA -> Lanes { return v * phi_exact(v); });
}

LOCKSTEP_VECTORIZED void backward_exact(const float* x, const float* dy, float* dx, std::int64_t n) {
  backend::map(x, dy, dx, n, [](const Lanes& v, const Lanes& dv) LOCKSTEP_INLINE_LAMBDA -> Lanes {
    const Lanes density = backend::vector_exp(v * v * -0.5F) * kDensity;
    return dv * (phi_exact(v) + v * density);
  });
}

}  // namespace

std::unique_ptr<Kernel> make_gelu_cpu(const KernelRequest& request) {
  const bool exact = request.attributes->text("approximate") == "none";
  return std::make_unique<ActivationCpu>(request.outputs[0].elements(), false, exact ? forward_exact : forward_tanh,
                                         exact ? backward_exact : backward_tanh);
}

}  // namespace lockstep::ops
