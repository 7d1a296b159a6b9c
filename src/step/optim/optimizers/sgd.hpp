// sgd: stochastic gradient descent, with momentum (Polyak, 1964) and Nesterov's look-ahead in the form of Sutskever and
// others ("On the importance of initialization and momentum in deep learning", ICML 2013). As in PyTorch's SGD, decay
// is added to the gradient, and the first update sets the momentum to the gradient.
#pragma once

#include "step/optim/elementwise.hpp"

namespace lockstep::optim {

struct Sgd {
  float rate, momentum, decay;
  bool nesterov;

  Sgd(const Attributes& settings, const UpdateStep& step, bool decays)
      : rate(step.learning_rate),
        momentum(settings.number("momentum")),
        decay(weight_decay_of(settings, decays)),
        nesterov(settings.boolean("nesterov")) {}

  LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE void operator()(float& p, float g) const { p -= rate * (g + decay * p); }

  LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE void operator()(float& p, float g, float& m) const {
    const float gradient = g + decay * p;
    m = momentum * m + gradient;
    p -= rate * (nesterov ? gradient + momentum * m : m);
  }
};

inline ElementwiseOptimizer<Sgd> make_sgd() {
  ElementwiseOptimizer<Sgd> sgd;
  sgd.name = "sgd";
  sgd.doc = "stochastic gradient descent; decay is added to the gradient";
  sgd.order = 1;
  sgd.attributes = {
      {.name = "momentum",
       .kind = AttributeKind::number,
       .doc = "share of the last update kept",
       .default_value = 0.0,
       .minimum = 0,
       .maximum = 1,
       .below_maximum = true},
      {.name = "nesterov", .kind = AttributeKind::boolean, .doc = "look ahead by one update", .default_value = false},
  };
  add_weight_decay(sgd.attributes, 0, kCoupledDecayDoc);
  sgd.checks = {{{"nesterov", "momentum"}, [](const Attributes& settings) -> std::string {
                   if (!settings.boolean("nesterov") || settings.number("momentum") > 0) return "";
                   return "expected false, since momentum is 0, found true; set momentum, say to 0.9";
                 }}};
  sgd.states = [](const Attributes& settings) {
    return settings.number("momentum") > 0 ? std::vector<std::string>{"momentum"} : std::vector<std::string>{};
  };
  return sgd;
}

}  // namespace lockstep::optim
