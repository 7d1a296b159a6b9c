// optimizer: adam | {sgd: {momentum: 0.9}} | {adamw: {}, groups: [{match: head.*, rate: 10}], average: 0.999}
// learning_rate: 0.1 | {peak: 0.1, warmup: 1 epoch, schedule: {cosine: {final: 0}}}
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

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

std::string final_problem(const Rate& rate) {
  const Attributes& schedule = rate.schedule.attributes;
  for (const auto& [key, called] : {std::pair{"final", "final rate"}, {"min_rate", "min_rate"}}) {
    if (!schedule.has(key) || schedule.number(key) <= rate.peak) continue;
    return fmt::format("expected a {} of at most the peak, {}, found {}", called, rate.peak, schedule.number(key));
  }
  return "";
}

void check_final(const Rate& rate, const Scope& scope) {
  if (rate.peak == 0) return;  // not known yet: choose_rate()
  if (const std::string problem = final_problem(rate); !problem.empty()) scope.problem("schedule", problem);
}

Is<ParameterGroup> group_section() {
  return Section<ParameterGroup>()
      .field("match", &ParameterGroup::match, list_of<std::string>(text(), {.single = true}),
             "glob patterns of parameters; the first match wins")
      .required()
      .field("rate", &ParameterGroup::rate, number().above(0), "factor of the learning rate")
      .field("weight_decay", &ParameterGroup::weight_decay, optional_of<double>(number().at_least(0)),
             "instead of the optimizer's, for norms and biases too")
      .field("freeze_until", &ParameterGroup::freeze_until, span(true),
             "until then they keep their values; their update count and states begin there")
      .written_if([](const ParameterGroup& group) { return group.freeze_until.amount > 0; })
      .placed(&ParameterGroup::place);
}

Is<AverageOptions> average_section() {
  using Options = AverageOptions;
  return Section<Options>()
      .field("decay", &Options::decay, number().above(0).below(1).word("mean", 0),
             "exponential moving average: the share kept at an update; mean: all weights taken count the same")
      .required()
      .field("start", &Options::start, span(true), "of training, before the first weights are taken")
      .field("every", &Options::every, span(false), "from one to the next")
      .field("evaluate", &Options::evaluate, boolean(), "validation, eval, predict and export use the average")
      .shorthand("decay");
}

/// "0.01 for sgd, 0.001 for adam and adamw"
std::string rates_by_optimizer(const Catalogue& catalogue) {
  std::vector<std::pair<double, std::vector<std::string>>> names;
  for (const NamedAttributes& optimizer : catalogue.optimizers) {
    const auto same = [&](const auto& group) { return group.first == optimizer.learning_rate; };
    auto found = std::find_if(names.begin(), names.end(), same);
    if (found == names.end()) found = names.insert(found, {optimizer.learning_rate, {}});
    found->second.push_back(optimizer.name);
  }
  std::string text;
  for (const auto& [rate, optimizers] : names) {
    text += fmt::format("{}{} for {}", text.empty() ? "" : "; ", rate, fmt::join(optimizers, ", "));
  }
  return text;
}

}  // namespace

void choose_rate(JobFile& job, const Catalogue& catalogue) {
  if (job.learning_rate.peak > 0) return;
  const auto of_job = [&](const NamedAttributes& optimizer) { return optimizer.name == job.optimizer.kind; };
  const auto found = std::find_if(catalogue.optimizers.begin(), catalogue.optimizers.end(), of_job);
  if (found != catalogue.optimizers.end()) job.learning_rate.peak = found->learning_rate;
  const std::string problem = final_problem(job.learning_rate);
  if (!problem.empty()) throw Problems({{job.place_of("job.learning_rate.schedule"), problem}});
}

Is<LearningRateOptions> learning_rate_section(const Catalogue& catalogue) {
  return Section<Rate>()
      .field("peak", &Rate::peak, number().above(0).word("auto", 0),
             "after the warm-up; auto: " + rates_by_optimizer(catalogue))
      .field("warmup", &Rate::warmup, span(true), "linear warm-up to the peak")
      .field("schedule", &Rate::schedule, schedule_section(catalogue), "after the warm-up")
      .field("reference_batch", &Rate::reference_batch, number().at_least(1).word("never", 0),
             "linear scaling: the peak is multiplied by batch_size / reference_batch")
      .shorthand("peak")
      .check({"peak", "schedule"}, check_final);
}

Is<OptimizerOptions> optimizer_section(const Catalogue& catalogue) {
  Section<OptimizerOptions> section;
  add_options(section, catalogue.optimizers, &OptimizerOptions::kind, &OptimizerOptions::attributes);
  section.field("groups", &OptimizerOptions::groups, list_of(group_section(), {.least = 0}), "per-parameter overrides")
      .written_if([](const OptimizerOptions& options) { return !options.groups.empty(); })
      .field("average", &OptimizerOptions::average, optional_of(average_section()),
             "a second set of weights, averaged over training (EMA, SWA)")
      .written_if([](const OptimizerOptions& options) { return options.average.has_value(); });
  return section;
}

}  // namespace lockstep::config
