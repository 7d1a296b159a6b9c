// steps: the rate is multiplied by a factor at each milestone.
#include "lockstep/schedule.hpp"

namespace lockstep::optim {

namespace {

std::string rising_milestones(const Attributes& settings) {
  const auto& milestones = settings.spans("milestones");
  for (std::size_t i = 1; i < milestones.size(); ++i) {
    const Span &before = milestones[i - 1], &after = milestones[i];
    if (before.epochs != after.epochs || before.amount < after.amount) continue;
    return "expected rising milestones, found '" + to_string(before) + "' before '" + to_string(after) + "'";
  }
  return "";
}

double rate_after_milestones(const Attributes& settings, const ScheduleStep& at) {
  double rate = at.peak;
  for (const Span& milestone : settings.spans("milestones")) {
    if (at.step >= milestone.steps(at.steps_per_epoch)) rate *= settings.number("factor");
  }
  return rate;
}

}  // namespace

ScheduleDef make_steps() {
  ScheduleDef steps;
  steps.name = "steps";
  steps.doc = "a fall at each milestone";
  steps.order = 2;
  steps.attributes = {
      {.name = "milestones", .kind = AttributeKind::spans, .doc = "when the rate is multiplied by factor"},
      {.name = "factor",
       .kind = AttributeKind::number,
       .doc = "factor of the rate",
       .default_value = 0.1,
       .minimum = 0,
       .above_minimum = true},
  };
  steps.checks = {{{"milestones"}, rising_milestones}};
  steps.rate = rate_after_milestones;
  return steps;
}

}  // namespace lockstep::optim
