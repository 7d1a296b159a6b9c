// polynomial: a power of what is left of the run, from the peak to `final` (as Keras's PolynomialDecay, and PyTorch's
// PolynomialLR with its default end of 0).
#include <cmath>

#include "lockstep/schedule.hpp"

namespace lockstep::optim {

ScheduleDef make_polynomial() {
  ScheduleDef polynomial;
  polynomial.name = "polynomial";
  polynomial.doc = "a power of the remaining share of the run";
  polynomial.order = 6;
  polynomial.attributes = {
      {.name = "power",
       .kind = AttributeKind::number,
       .doc = "1: a straight line; above: a fast fall first",
       .default_value = 1.0,
       .minimum = 0,
       .above_minimum = true},
      {.name = "final",
       .kind = AttributeKind::number,
       .doc = "the rate at the end",
       .default_value = 0.0,
       .minimum = 0},
  };
  polynomial.shorthand = "power";
  polynomial.rate = [](const Attributes& settings, const ScheduleStep& at) {
    const double final = settings.number("final");
    return final + (at.peak - final) * std::pow(1 - at.progress, settings.number("power"));
  };
  return polynomial;
}

}  // namespace lockstep::optim
