// lars: You, Gitman and Ginsburg, "Large Batch Training of Convolutional Networks", 2017, algorithm 1.
#pragma once

#include "step/optim/elementwise.hpp"

namespace lockstep::optim {

struct Lars {
  float rate, momentum, decay;
  double coefficient;
  float trust = 1;

  Lars(const Attributes& settings, const UpdateStep& step, bool decays)
      : rate(step.learning_rate),
        momentum(settings.number("momentum")),
        decay(weight_decay_of(settings, decays)),
        coefficient(settings.number("trust")) {}

  LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE void measure(float /*p*/, float /*g*/) const {}
  LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE void measure(float /*p*/, float /*g*/, float& /*m*/) const {}
  LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE float direction(float /*p*/, float g) const { return g; }
  LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE float direction(float /*p*/, float g, float /*m*/) const { return g; }
  /// A parameter that is 0, or has no gradient, has the factor 1.
  LOCKSTEP_HOST_DEVICE float ratio(double parameter, double gradient, std::int64_t /*elements*/) const {
    if (!(parameter > 0 && gradient > 0)) return 1;
    return coefficient * parameter / (gradient + decay * parameter);
  }
  LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE void operator()(float& p, float g) const { p -= rate * trust * (g + decay * p); }
  LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE void operator()(float& p, float g, float& m) const {
    m = momentum * m + rate * trust * (g + decay * p);
    p -= m;
  }
};

inline ElementwiseOptimizer<Lars> make_lars() {
  ElementwiseOptimizer<Lars> lars;
  lars.name = "lars";
  lars.doc = "sgd with trust ratios, for large batches";
  lars.order = 9;
  lars.learning_rate = 1;
  lars.attributes = {
      {.name = "momentum",
       .kind = AttributeKind::number,
       .doc = "share of the last update kept",
       .default_value = 0.9,
       .minimum = 0,
       .maximum = 1,
       .below_maximum = true},
      {.name = "trust",
       .kind = AttributeKind::number,
       .doc = "factor of the ratio of norms (eta); norms and biases have the plain rate",
       .default_value = 0.001,
       .minimum = 0,
       .above_minimum = true},
  };
  add_weight_decay(lars.attributes, 0, kTrustedDecayDoc);
  lars.states = [](const Attributes& settings) {
    return settings.number("momentum") > 0 ? std::vector<std::string>{"momentum"} : std::vector<std::string>{};
  };
  return lars;
}

}  // namespace lockstep::optim
