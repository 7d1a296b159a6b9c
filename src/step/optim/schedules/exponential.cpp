// exponential: the rate is multiplied by a factor over each period, all along or at its end. As Keras's
// ExponentialDecay; PyTorch's ExponentialLR is `{factor: gamma, every: 1 epoch, staircase: true}`.
#include <algorithm>
#include <cmath>

#include "lockstep/schedule.hpp"

namespace lockstep::optim {

ScheduleDef make_exponential() {
  ScheduleDef exponential;
  exponential.name = "exponential";
  exponential.doc = "a factor for each period";
  exponential.order = 5;
  exponential.attributes = {
      {.name = "factor",
       .kind = AttributeKind::number,
       .doc = "factor of the rate per period; above 1 it rises",
       .minimum = 0,
       .maximum = 1000,
       .above_minimum = true},
      {.name = "every", .kind = AttributeKind::span, .doc = "the period", .default_value = Span{1, true}},
      {.name = "staircase",
       .kind = AttributeKind::boolean,
       .doc = "fall at the end of each period instead of continuously",
       .default_value = false},
  };
  exponential.shorthand = "factor";
  exponential.rate = [](const Attributes& settings, const ScheduleStep& at) {
    const std::int64_t period = std::max<std::int64_t>(settings.span("every").steps(at.steps_per_epoch), 1);
    const double periods = static_cast<double>(at.since_warmup) / period;
    return at.peak * std::pow(settings.number("factor"), settings.boolean("staircase") ? std::floor(periods) : periods);
  };
  return exponential;
}

}  // namespace lockstep::optim
