// lion: Chen and others, "Symbolic Discovery of Optimization Algorithms", NeurIPS 2023, algorithm 2, with its decoupled
// weight decay.
#pragma once

#include "step/optim/elementwise.hpp"

namespace lockstep::optim {

struct Lion {
  float rate, one_minus_beta1, one_minus_beta2;
  float keep;  // 1 - rate * weight decay

  Lion(const Attributes& settings, const UpdateStep& step, bool decays)
      : rate(step.learning_rate),
        one_minus_beta1(1 - settings.number("beta1")),
        one_minus_beta2(1 - settings.number("beta2")),
        keep(1 - step.learning_rate * weight_decay_of(settings, decays)) {}

  /// A parameter whose gradient has always been 0 stays where it is, but for the decay.
  LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE void operator()(float& p, float g, float& m) const {
    const float direction = m + one_minus_beta1 * (g - m);
    const float signed_rate = direction > 0 ? rate : direction < 0 ? -rate : 0.0F;
    p = p * keep - signed_rate;
    m += one_minus_beta2 * (g - m);
  }
};

inline ElementwiseOptimizer<Lion> make_lion() {
  ElementwiseOptimizer<Lion> lion;
  lion.name = "lion";
  lion.doc = "sign of the momentum, decoupled weight decay";
  lion.order = 6;
  lion.learning_rate = 0.0001;
  const auto beta = [](const std::string& name, double value, const std::string& doc) {
    return AttributeSpec{.name = name,
                         .kind = AttributeKind::number,
                         .doc = doc,
                         .default_value = value,
                         .minimum = 0,
                         .maximum = 1,
                         .below_maximum = true};
  };
  lion.attributes = {
      beta("beta1", 0.9, "weight of the gradient's running mean in the sign's argument"),
      beta("beta2", 0.99, "decay of the gradient's running mean"),
  };
  add_weight_decay(lion.attributes, 0, "a step multiplies the parameter by 1 - rate * this");
  lion.states = [](const Attributes& /*settings*/) { return std::vector<std::string>{"first_moment"}; };
  return lion;
}

}  // namespace lockstep::optim
