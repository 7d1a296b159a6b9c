// optimizer: adam | {sgd: {momentum: 0.9}} | {adamw: {}, groups: [{match: head.*, rate: 10}]}
// learning_rate: 0.1 | {peak: 0.1, warmup: 1 epoch, schedule: {cosine: {final: 0}}}
#include <fmt/format.h>

#include "config/attribute_rules.hpp"
#include "config/list_rules.hpp"
#include "config/scalar_rules.hpp"
#include "config/sections.hpp"

namespace lockstep::config {
namespace {

using Rate = LearningRateOptions;

Is<ScheduleOptions> schedule_section(const Catalogue& catalogue) {
  Section<ScheduleOptions> section;
  add_options(section, catalogue.schedules, &ScheduleOptions::kind, &ScheduleOptions::attributes);
  return section;
}

void check_final(const Rate& rate, const Scope& scope) {
  const Attributes& schedule = rate.schedule.attributes;
  if (!schedule.has("final") || schedule.number("final") <= rate.peak) return;
  scope.problem("schedule", fmt::format("expected a final rate of at most the peak, {}, found {}", rate.peak,
                                        schedule.number("final")));
}

Is<ParameterGroup> group_section() {
  return Section<ParameterGroup>()
      .field("match", &ParameterGroup::match, list_of<std::string>(text(), {.single = true}),
             "glob patterns over the names of parameters; one in several groups is of the first")
      .required()
      .field("rate", &ParameterGroup::rate, number().above(0), "factor of the learning rate")
      .field("weight_decay", &ParameterGroup::weight_decay, optional_of<double>(number().at_least(0)),
             "instead of the optimizer's, for norms and biases too")
      .placed(&ParameterGroup::place);
}

}  // namespace

Is<LearningRateOptions> learning_rate_section(const Catalogue& catalogue) {
  return Section<Rate>()
      .field("peak", &Rate::peak, number().above(0), "the rate at the end of the warm-up")
      .field("warmup", &Rate::warmup, span(true), "how long the rate rises, in equal steps, to the peak")
      .field("schedule", &Rate::schedule, schedule_section(catalogue), "what follows the warm-up")
      .field("reference_batch", &Rate::reference_batch, number().at_least(1).word("never", 0),
             "linear scaling: the peak is multiplied by batch_size / reference_batch")
      .shorthand("peak")
      .check({"peak", "schedule"}, check_final);
}

Is<OptimizerOptions> optimizer_section(const Catalogue& catalogue) {
  Section<OptimizerOptions> section;
  add_options(section, catalogue.optimizers, &OptimizerOptions::kind, &OptimizerOptions::attributes);
  section
      .field("groups", &OptimizerOptions::groups, list_of(group_section(), {.least = 0}),
             "parameters that are updated with another rate or weight decay")
      .written_if([](const OptimizerOptions& options) { return !options.groups.empty(); });
  return section;
}

}  // namespace lockstep::config
