#include "polynomial.hpp"

#include <cmath>

lockstep::ScheduleDef make_polynomial() {
  using namespace lockstep;
  ScheduleDef polynomial;
  polynomial.name = "polynomial";
  polynomial.doc = "falls to 0 along a power of what is left of the run";
  polynomial.attributes = {{.name = "power",
                            .kind = AttributeKind::number,
                            .doc = "1: a straight line",
                            .default_value = 2.0,
                            .minimum = 0}};
  polynomial.shorthand = "power";  // `schedule: {polynomial: 2}` in a job file
  polynomial.rate = [](const Attributes& settings, const ScheduleStep& at) {
    return at.peak * std::pow(1 - at.progress, settings.number("power"));
  };
  return polynomial;
}
