// adagrad: Duchi, Hazan and Singer, "Adaptive Subgradient Methods for Online Learning and Stochastic Optimization",
// JMLR 2011. As PyTorch's Adagrad: epsilon is added to the root.
#pragma once

#include <cmath>

#include "step/optim/elementwise.hpp"

namespace lockstep::optim {

struct Adagrad {
  float rate, epsilon, decay;
  float first;  // what the sum of squares begins with, in the first update

  Adagrad(const Attributes& settings, const UpdateStep& step, bool decays)
      : rate(step.learning_rate),
        epsilon(settings.number("epsilon")),
        decay(weight_decay_of(settings, decays)),
        first(step.update == 0 ? static_cast<float>(settings.number("initial")) : 0.0F) {}

  LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE void operator()(float& p, float g, float& squares) const {
    const float gradient = g + decay * p;
    squares = (squares + first) + gradient * gradient;
    p -= rate * (gradient / (std::sqrt(squares) + epsilon));
  }
};

inline ElementwiseOptimizer<Adagrad> make_adagrad() {
  ElementwiseOptimizer<Adagrad> adagrad;
  adagrad.name = "adagrad";
  adagrad.doc = "gradients over the root of their squares' sum; decay is added to the gradient";
  adagrad.order = 7;
  adagrad.attributes = {
      {.name = "initial",
       .kind = AttributeKind::number,
       .doc = "initial sum of squares",
       .default_value = 0.0,
       .minimum = 0},
      {.name = "epsilon",
       .kind = AttributeKind::number,
       .doc = "added to the root",
       .default_value = 1e-10,
       .minimum = 0,
       .above_minimum = true},
  };
  add_weight_decay(adagrad.attributes, 0, kCoupledDecayDoc);
  adagrad.states = [](const Attributes& /*settings*/) { return std::vector<std::string>{"square_sum"}; };
  return adagrad;
}

}  // namespace lockstep::optim
