// adam: Kingma and Ba, "Adam: A Method for Stochastic Optimization", ICLR 2015, algorithm 1; decay is added to the
// gradient.
#pragma once

#include <cmath>

#include "step/optim/elementwise.hpp"

namespace lockstep::optim {

/// The step of a parameter from its gradient. A moment is written m += (1 - beta) * (g - m), without beta itself: fp32
/// represents a beta near 1 inaccurately (1 - 0.9999F is off by 1.7e-4), and the bias corrections would then use
/// another beta than the moments do.
struct AdamStep {
  float rate, one_minus_beta1, one_minus_beta2, epsilon;
  float first_correction, second_correction;  // 1 / (1 - beta1^t), and 1 / sqrt(1 - beta2^t)

  AdamStep(const Attributes& settings, const UpdateStep& step)
      : rate(step.learning_rate),
        one_minus_beta1(1 - settings.number("beta1")),
        one_minus_beta2(1 - settings.number("beta2")),
        epsilon(settings.number("epsilon")),
        first_correction(1 / one_minus_power(settings.number("beta1"), step.update + 1)),
        second_correction(
            static_cast<float>(1 / std::sqrt(one_minus_power(settings.number("beta2"), step.update + 1)))) {}

  LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE float operator()(float g, float& m, float& v) const {
    add(g, m, v);
    return rate * (m * first_correction) / (std::sqrt(v) * second_correction + epsilon);
  }
  LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE void add(float g, float& m, float& v) const {
    m += one_minus_beta1 * (g - m);
    v += one_minus_beta2 * (g * g - v);
  }

 private:
  /// 1 - beta^t, without the cancellation that the plain difference has if beta is near 1.
  static double one_minus_power(double beta, std::int64_t t) {
    return beta > 0 ? -std::expm1(t * std::log(beta)) : 1.0;
  }
};

struct Adam {
  AdamStep step;
  float decay;

  Adam(const Attributes& settings, const UpdateStep& of, bool decays)
      : step(settings, of), decay(weight_decay_of(settings, decays)) {}

  LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE void operator()(float& p, float g, float& m, float& v) const {
    p -= step(g + decay * p, m, v);
  }
};

/// The common part of adam and its variants.
template <class Formula>
ElementwiseOptimizer<Formula> adam_with(double weight_decay, const std::string& decay_doc) {
  ElementwiseOptimizer<Formula> adam;
  const auto beta = [](const std::string& name, double value, const std::string& doc) {
    return AttributeSpec{.name = name,
                         .kind = AttributeKind::number,
                         .doc = doc,
                         .default_value = value,
                         .minimum = 0,
                         .maximum = 1,
                         .below_maximum = true};
  };
  adam.attributes = {
      beta("beta1", 0.9, "decay of the gradient's running mean"),
      beta("beta2", 0.999, "decay of its square's running mean"),
      {.name = "epsilon",
       .kind = AttributeKind::number,
       .doc = "added to the denominator",
       .default_value = 1e-8,
       .minimum = 0,
       .above_minimum = true},
  };
  add_weight_decay(adam.attributes, weight_decay, decay_doc);
  adam.states = [](const Attributes& /*settings*/) {
    return std::vector<std::string>{"first_moment", "second_moment"};
  };
  return adam;
}

inline ElementwiseOptimizer<Adam> make_adam() {
  auto adam = adam_with<Adam>(0, kCoupledDecayDoc);
  adam.name = "adam";
  adam.doc = "Adam; decay is added to the gradient";
  adam.order = 2;
  adam.learning_rate = 0.001;
  return adam;
}

}  // namespace lockstep::optim
