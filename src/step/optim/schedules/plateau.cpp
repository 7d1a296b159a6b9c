// plateau: the rate falls by a factor when evaluations get no better. As PyTorch's ReduceLROnPlateau with an absolute
// threshold (and one evaluation less of patience, which PyTorch lets go by), and as Keras's callback; during a
// cool-down no evaluation counts as one without improvement, as in PyTorch.
#include <algorithm>
#include <string>

#include "lockstep/schedule.hpp"

namespace lockstep::optim {

namespace {

double rate_after_falls(const Attributes& settings, const ScheduleStep& at) {
  const double factor = settings.number("factor"), lowest = settings.number("min_rate");
  double rate = at.peak;
  for (std::int64_t fall = 0; fall < at.memory.falls && rate > lowest; ++fall) rate = std::max(rate * factor, lowest);
  return rate;
}

void follow(const Attributes& settings, bool improved, ScheduleMemory& memory) {
  if (memory.cooldown > 0) {
    --memory.cooldown;
    memory.without_improvement = 0;
    return;
  }
  memory.without_improvement = improved ? 0 : memory.without_improvement + 1;
  if (memory.without_improvement < settings.integer("patience")) return;
  memory = {.without_improvement = 0, .cooldown = settings.integer("cooldown"), .falls = memory.falls + 1};
}

}  // namespace

ScheduleDef make_plateau() {
  ScheduleDef plateau;
  plateau.name = "plateau";
  plateau.doc = "a fall when evaluations get no better";
  plateau.order = 8;
  plateau.attributes = {
      {.name = "metric",
       .kind = AttributeKind::text,
       .doc = "loss, or one of the job's metrics",
       .default_value = std::string("loss")},
      {.name = "factor",
       .kind = AttributeKind::number,
       .doc = "factor of the rate",
       .default_value = 0.1,
       .minimum = 0,
       .maximum = 1,
       .above_minimum = true,
       .below_maximum = true},
      {.name = "patience",
       .kind = AttributeKind::integer,
       .doc = "evaluations without improvement before the rate falls",
       .default_value = std::int64_t{10},
       .minimum = 1},
      {.name = "min_delta",
       .kind = AttributeKind::number,
       .doc = "minimum improvement",
       .default_value = 0.0001,
       .minimum = 0},
      {.name = "cooldown",
       .kind = AttributeKind::integer,
       .doc = "evaluations ignored after a fall",
       .default_value = std::int64_t{0},
       .minimum = 0},
      {.name = "min_rate", .kind = AttributeKind::number, .doc = "the lowest rate", .default_value = 0.0, .minimum = 0},
  };
  plateau.shorthand = "metric";
  plateau.rate = rate_after_falls;
  plateau.evaluated = follow;
  return plateau;
}

}  // namespace lockstep::optim
