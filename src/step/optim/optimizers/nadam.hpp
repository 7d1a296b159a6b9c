// nadam: Dozat, "Incorporating Nesterov Momentum into Adam", ICLR workshop 2016, with its course of beta1. As PyTorch's
// NAdam: decay is added to the gradient.
#pragma once

#include <cmath>

#include "step/optim/optimizers/adam.hpp"

namespace lockstep::optim {

struct Nadam {
  float one_minus_beta1, one_minus_beta2, epsilon, decay;
  float of_gradient, of_momentum;  // the rate times the weights of the gradient and of its running mean in a step
  float second_correction;         // 1 / sqrt(1 - beta2^t)

  Nadam(const Attributes& settings, const UpdateStep& step, bool decays)
      : one_minus_beta1(1 - settings.number("beta1")),
        one_minus_beta2(1 - settings.number("beta2")),
        epsilon(settings.number("epsilon")),
        decay(weight_decay_of(settings, decays)),
        second_correction(AdamStep(settings, step).second_correction) {
    const double now = beta1_at(settings, step.update + 1), next = beta1_at(settings, step.update + 2);
    const double product = product_of_beta1(settings, step.update + 1);
    of_gradient = step.learning_rate * (1 - now) / (1 - product);
    of_momentum = step.learning_rate * next / (1 - product * next);
  }

  LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE void operator()(float& p, float g, float& m, float& v) const {
    const float gradient = g + decay * p;
    m += one_minus_beta1 * (gradient - m);
    v += one_minus_beta2 * (gradient * gradient - v);
    p -= (of_gradient * gradient + of_momentum * m) / (std::sqrt(v) * second_correction + epsilon);
  }

 private:
  /// Beta1 rises from half of it, so that the first steps trust the gradient more.
  static double beta1_at(const Attributes& settings, std::int64_t t) {
    return settings.number("beta1") * (1 - 0.5 * std::pow(0.96, t * settings.number("momentum_decay")));
  }

  /// Of updates 1 to t. What is left of it after some hundred updates changes no digit of 1 minus it.
  static double product_of_beta1(const Attributes& settings, std::int64_t t) {
    double product = 1;
    for (std::int64_t i = 1; i <= t && product > 1e-20; ++i) product *= beta1_at(settings, i);
    return product;
  }
};

inline ElementwiseOptimizer<Nadam> make_nadam() {
  auto nadam = adam_with<Nadam>(0, kCoupledDecayDoc);
  nadam.name = "nadam";
  nadam.doc = "Adam with Nesterov's look ahead; decay is added to the gradient";
  nadam.order = 4;
  nadam.learning_rate = 0.001;
  nadam.attributes.insert(nadam.attributes.begin() + 3, {.name = "momentum_decay",
                                                         .kind = AttributeKind::number,
                                                         .doc = "how fast beta1 rises from half of it",
                                                         .default_value = 0.004,
                                                         .minimum = 0});
  return nadam;
}

}  // namespace lockstep::optim
