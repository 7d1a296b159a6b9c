// The optimizers' formulas for one element, for the CPU's loops (optimizer.cpp) and for GPUs (update_kernels.hpp).
#pragma once

#include <cmath>

#include "core/host_device.hpp"
#include "core/vectorize.hpp"

namespace lockstep::optim {

struct SgdScalars {
  float rate, momentum, decay;
  bool nesterov;
};

LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE void sgd_plain(float& p, float g, const SgdScalars& s) {
  p -= s.rate * (g + s.decay * p);
}

LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE void sgd_momentum(float& p, float g, float& m, const SgdScalars& s) {
  const float gradient = g + s.decay * p;
  m = s.momentum * m + gradient;
  p -= s.rate * (s.nesterov ? gradient + s.momentum * m : m);
}

/// Each is computed in double from the job's values and rounded once. A moment is written m += (1 - beta) * (g - m),
/// without beta itself: fp32 holds a beta near 1 badly (1 - 0.9999F is off by 1.7e-4), and the bias corrections would
/// then belong to another beta than the moments do. (Kingma and Ba, "Adam", 2015, algorithm 1.)
struct AdamScalars {
  float one_minus_beta1, one_minus_beta2, epsilon;
  float first_correction, second_correction;  // 1 / (1 - beta1^t), and 1 / sqrt(1 - beta2^t)
  float rate, coupled_decay, keep;            // keep: 1 - rate * decoupled decay
};

LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE void adam(float& p, float g, float& m, float& v, const AdamScalars& s) {
  const float gradient = g + s.coupled_decay * p;
  m += s.one_minus_beta1 * (gradient - m);
  v += s.one_minus_beta2 * (gradient * gradient - v);
  const float denominator = std::sqrt(v) * s.second_correction + s.epsilon;
  p = p * s.keep - s.rate * (m * s.first_correction) / denominator;
}

}  // namespace lockstep::optim
