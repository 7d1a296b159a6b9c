// The optimizers' formulas for one element, for the CPU's loops (optimizer.cpp) and for GPUs (update_kernels.hpp).
#pragma once

#include <cmath>

#include "core/host_device.hpp"
#include "core/vectorize.hpp"

namespace lockstep::train {

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

struct AdamScalars {
  float beta1, beta2, epsilon;
  float first_correction, second_correction;  // 1 / (1 - beta^t), and 1 / sqrt(1 - beta2^t)
  float rate, coupled_decay, keep;            // keep: 1 - rate * decoupled decay
};

LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE void adam(float& p, float g, float& m, float& v, const AdamScalars& s) {
  const float gradient = g + s.coupled_decay * p;
  m = s.beta1 * m + (1.0F - s.beta1) * gradient;
  v = s.beta2 * v + (1.0F - s.beta2) * (gradient * gradient);
  const float denominator = std::sqrt(v) * s.second_correction + s.epsilon;
  p = p * s.keep - s.rate * (m * s.first_correction) / denominator;
}

}  // namespace lockstep::train
