// linear: a straight line from the peak to `final`.
#include "lockstep/schedule.hpp"

namespace lockstep::optim {

ScheduleDef make_linear() {
  ScheduleDef linear;
  linear.name = "linear";
  linear.doc = "a straight line to the last step";
  linear.order = 3;
  linear.attributes = {{.name = "final",
                        .kind = AttributeKind::number,
                        .doc = "the rate at the end",
                        .default_value = 0.0,
                        .minimum = 0}};
  linear.rate = [](const Attributes& settings, const ScheduleStep& at) {
    return at.peak + (settings.number("final") - at.peak) * at.progress;
  };
  return linear;
}

}  // namespace lockstep::optim
