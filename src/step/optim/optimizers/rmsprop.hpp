// rmsprop: Tieleman and Hinton, "Lecture 6.5: rmsprop" of "Neural Networks for Machine Learning", 2012; centered as in
// Graves, "Generating Sequences With Recurrent Neural Networks", 2013. As PyTorch's RMSprop: epsilon is added to the
// root, and the rate is outside of the momentum.
#pragma once

#include <cmath>

#include "step/optim/elementwise.hpp"

namespace lockstep::optim {

struct RmsProp {
  float rate, one_minus_alpha, epsilon, momentum, decay;
  bool centered;

  RmsProp(const Attributes& settings, const UpdateStep& step, bool decays)
      : rate(step.learning_rate),
        one_minus_alpha(1 - settings.number("alpha")),
        epsilon(settings.number("epsilon")),
        momentum(settings.number("momentum")),
        decay(weight_decay_of(settings, decays)),
        centered(settings.boolean("centered")) {}

  LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE void operator()(float& p, float g, float& square) const {
    const float gradient = g + decay * p;
    square += one_minus_alpha * (gradient * gradient - square);
    p -= rate * (gradient / (std::sqrt(square) + epsilon));
  }

  /// The second state is the gradient's mean, or the momentum.
  LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE void operator()(float& p, float g, float& square, float& second) const {
    const float gradient = g + decay * p;
    square += one_minus_alpha * (gradient * gradient - square);
    const float mean = centered ? second + one_minus_alpha * (gradient - second) : 0.0F;
    const float scaled = gradient / (root_of_variance(square, mean) + epsilon);
    second = centered ? mean : momentum * second + scaled;
    p -= rate * (centered ? scaled : second);
  }

  LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE void operator()(float& p, float g, float& square, float& mean, float& m) const {
    const float gradient = g + decay * p;
    square += one_minus_alpha * (gradient * gradient - square);
    mean += one_minus_alpha * (gradient - mean);
    m = momentum * m + gradient / (root_of_variance(square, mean) + epsilon);
    p -= rate * m;
  }

 private:
  /// The mean of squares is never below the square of the mean but for roundings, where gradients hardly change.
  static LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE float root_of_variance(float square, float mean) {
    const float variance = square - mean * mean;
    return std::sqrt(variance > 0 ? variance : 0.0F);
  }
};

inline ElementwiseOptimizer<RmsProp> make_rmsprop() {
  ElementwiseOptimizer<RmsProp> rmsprop;
  rmsprop.name = "rmsprop";
  rmsprop.doc = "gradients over the root of their squares' running mean; decay is added to the gradient";
  rmsprop.order = 5;
  rmsprop.learning_rate = 0.001;
  const auto share = [](const std::string& name, double value, const std::string& doc) {
    return AttributeSpec{.name = name,
                         .kind = AttributeKind::number,
                         .doc = doc,
                         .default_value = value,
                         .minimum = 0,
                         .maximum = 1,
                         .below_maximum = true};
  };
  rmsprop.attributes = {
      share("alpha", 0.99, "decay of the square's running mean"),
      {.name = "epsilon",
       .kind = AttributeKind::number,
       .doc = "added to the root",
       .default_value = 1e-8,
       .minimum = 0,
       .above_minimum = true},
      share("momentum", 0, "share of the last update kept"),
      {.name = "centered",
       .kind = AttributeKind::boolean,
       .doc = "use the running variance instead",
       .default_value = false},
  };
  add_weight_decay(rmsprop.attributes, 0, kCoupledDecayDoc);
  rmsprop.states = [](const Attributes& settings) {
    std::vector<std::string> states = {"square_mean"};
    if (settings.boolean("centered")) states.emplace_back("gradient_mean");
    if (settings.number("momentum") > 0) states.emplace_back("momentum");
    return states;
  };
  return rmsprop;
}

}  // namespace lockstep::optim
