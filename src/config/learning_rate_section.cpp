// learning_rate: 0.1 | {peak: 0.1, warmup: 1 epoch, schedule: {cosine: {final: 0}}}
#include <fmt/format.h>

#include "config/list_rules.hpp"
#include "config/scalar_rules.hpp"
#include "config/sections.hpp"

namespace lockstep::config {
namespace {

using Rate = LearningRateOptions;

Section<Rate> to_final() {
  return Section<Rate>().field("final", &Rate::final, number().at_least(0), "the rate at the end");
}

void check_order(const Rate& rate, const Scope& scope) {
  for (std::size_t i = 1; i < rate.milestones.size(); ++i) {
    const Span &before = rate.milestones[i - 1], &after = rate.milestones[i];
    if (before.epochs == after.epochs && before.amount >= after.amount) {
      scope.problem("milestones", fmt::format("expected rising milestones, found '{}' before '{}'", span_text(before),
                                              span_text(after)));
    }
  }
}

Is<Rate> schedule() {
  return Section<Rate>()
      .option("constant", &Rate::schedule, Section<Rate>(), "the peak from the warm-up's end on")
      .option("steps", &Rate::schedule,
              Section<Rate>()
                  .field("milestones", &Rate::milestones, list_of(span(false)), "when the rate is multiplied by factor")
                  .required()
                  .field("factor", &Rate::factor, number().above(0), "what it is multiplied by")
                  .check({"milestones"}, check_order),
              "a fall at each milestone")
      .option("linear", &Rate::schedule, to_final(), "a straight line from the warm-up's end to the last step")
      .option("cosine", &Rate::schedule, to_final(), "half a cosine from the warm-up's end to the last step");
}

}  // namespace

Is<LearningRateOptions> learning_rate_section() {
  return Section<Rate>()
      .field("peak", &Rate::peak, number().above(0), "the rate at the end of the warm-up")
      .field("warmup", &Rate::warmup, span(true), "how long the rate rises, in equal steps, to the peak")
      .part("schedule", schedule(), "what follows the warm-up")
      .field("reference_batch", &Rate::reference_batch, number().at_least(1).word("never", 0),
             "linear scaling: the peak is multiplied by batch_size / reference_batch")
      .shorthand("peak")
      .check({"peak", "schedule"}, [](const Rate& rate, const Scope& scope) {
        if (rate.final > rate.peak) {
          scope.problem("schedule",
                        fmt::format("expected a final rate of at most the peak, {}, found {}", rate.peak, rate.final));
        }
      });
}

}  // namespace lockstep::config
