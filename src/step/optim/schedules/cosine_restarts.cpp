// cosine_restarts: half a cosine from the peak to `final`, again and again (Loshchilov and Hutter, "SGDR: Stochastic
// Gradient Descent with Warm Restarts", ICLR 2017). As PyTorch's CosineAnnealingWarmRestarts.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "lockstep/schedule.hpp"

namespace lockstep::optim {

namespace {

double rate_since_restart(const Attributes& settings, const ScheduleStep& at) {
  const double growth = settings.number("growth"), final = settings.number("final");
  double cycle = std::max<std::int64_t>(settings.span("first").steps(at.steps_per_epoch), 1);
  double since = at.since_warmup;
  if (growth == 1) since = std::fmod(since, cycle);
  while (since >= cycle) {
    since -= cycle;
    cycle *= growth;
  }
  return final + (at.peak - final) * 0.5 * (1 + std::cos(std::numbers::pi * since / cycle));
}

}  // namespace

ScheduleDef make_cosine_restarts() {
  ScheduleDef restarts;
  restarts.name = "cosine_restarts";
  restarts.doc = "half a cosine to the final rate, repeated from the peak";
  restarts.order = 8;
  restarts.attributes = {
      {.name = "first", .kind = AttributeKind::span, .doc = "length of the first cosine"},
      {.name = "growth",
       .kind = AttributeKind::number,
       .doc = "factor of the length of each next one",
       .default_value = 1.0,
       .minimum = 1},
      {.name = "final",
       .kind = AttributeKind::number,
       .doc = "the rate before each restart",
       .default_value = 0.0,
       .minimum = 0},
  };
  restarts.shorthand = "first";
  restarts.rate = rate_since_restart;
  return restarts;
}

}  // namespace lockstep::optim
