// lamb: You and others, "Large Batch Optimization for Deep Learning: Training BERT in 76 minutes", ICLR 2020, algorithm
// 2, with the identity as its function phi of a parameter's norm.
#pragma once

#include <cmath>

#include "step/optim/optimizers/adam.hpp"

namespace lockstep::optim {

struct Lamb {
  AdamStep step;
  float decay;
  float trust = 1;

  Lamb(const Attributes& settings, const UpdateStep& of, bool decays)
      : step(settings, of), decay(weight_decay_of(settings, decays)) {}

  LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE void measure(float /*p*/, float g, float& m, float& v) const {
    step.add(g, m, v);
  }
  LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE float direction(float p, float /*g*/, float m, float v) const {
    return m * step.first_correction / (std::sqrt(v) * step.second_correction + step.epsilon) + decay * p;
  }
  /// A parameter that is 0, or stays where it is, has the factor 1.
  LOCKSTEP_HOST_DEVICE float ratio(double parameter, double direction, std::int64_t /*elements*/) const {
    return parameter > 0 && direction > 0 ? static_cast<float>(parameter / direction) : 1.0F;
  }
  LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE void operator()(float& p, float g, float& m, float& v) const {
    p -= step.rate * trust * direction(p, g, m, v);
  }
};

inline ElementwiseOptimizer<Lamb> make_lamb() {
  auto lamb = adam_with<Lamb>(0.01, kTrustedDecayDoc);
  lamb.name = "lamb";
  lamb.doc = "Adam with trust ratios, for large batches";
  lamb.order = 8;
  lamb.learning_rate = 0.001;
  for (AttributeSpec& attribute : lamb.attributes) {
    if (attribute.name == "epsilon") attribute.default_value = 1e-6;
  }
  return lamb;
}

}  // namespace lockstep::optim
