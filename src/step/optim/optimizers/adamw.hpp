// adamw: Adam with decoupled weight decay (Loshchilov and Hutter, "Decoupled Weight Decay Regularization", ICLR 2019).
#pragma once

#include "step/optim/optimizers/adam.hpp"

namespace lockstep::optim {

struct AdamW {
  AdamStep step;
  float keep;  // 1 - rate * weight decay

  AdamW(const Attributes& settings, const UpdateStep& of, bool decays)
      : step(settings, of), keep(1 - of.learning_rate * weight_decay_of(settings, decays)) {}

  LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE void operator()(float& p, float g, float& m, float& v) const {
    p = p * keep - step(g, m, v);
  }
};

inline ElementwiseOptimizer<AdamW> make_adamw() {
  auto adamw = adam_with<AdamW>(0.01, "a step multiplies the parameter by 1 - rate * this");
  adamw.name = "adamw";
  adamw.doc = "Adam with decoupled weight decay";
  adamw.order = 3;
  adamw.learning_rate = 0.001;
  return adamw;
}

}  // namespace lockstep::optim
