// constant: the peak.
#include "lockstep/schedule.hpp"

namespace lockstep::optim {

ScheduleDef make_constant() {
  ScheduleDef constant;
  constant.name = "constant";
  constant.doc = "the peak";
  constant.order = 1;
  constant.rate = [](const Attributes& /*settings*/, const ScheduleStep& at) { return at.peak; };
  return constant;
}

}  // namespace lockstep::optim
