// cosine: half a cosine from the peak to `final` (Loshchilov and Hutter, "SGDR", ICLR 2017, without its restarts).
#include <cmath>
#include <numbers>

#include "lockstep/schedule.hpp"

namespace lockstep::optim {

ScheduleDef make_cosine() {
  ScheduleDef cosine;
  cosine.name = "cosine";
  cosine.doc = "half a cosine to the last step";
  cosine.order = 4;
  cosine.attributes = {{.name = "final",
                        .kind = AttributeKind::number,
                        .doc = "the rate at the end",
                        .default_value = 0.0,
                        .minimum = 0}};
  cosine.rate = [](const Attributes& settings, const ScheduleStep& at) {
    const double final = settings.number("final");
    return final + (at.peak - final) * 0.5 * (1 + std::cos(std::numbers::pi * at.progress));
  };
  return cosine;
}

}  // namespace lockstep::optim
