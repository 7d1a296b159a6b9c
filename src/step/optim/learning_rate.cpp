#include "step/optim/learning_rate.hpp"

#include <algorithm>

#include "lockstep/error.hpp"

namespace lockstep::optim {

LearningRate::LearningRate(const LearningRateOptions& options, const ScheduleRegistry& schedules,
                           std::int64_t batch_size, std::int64_t steps, std::int64_t steps_per_epoch)
    : schedule_(schedules.at(options.schedule.kind)),
      settings_(complete(schedule_.attributes, options.schedule.attributes, "schedule '" + schedule_.name + "'",
                         schedule_.checks)),
      peak_(options.peak),
      steps_(steps),
      warmup_(options.warmup.steps(steps_per_epoch)),
      steps_per_epoch_(steps_per_epoch) {
  if (peak_ <= 0) throw Error(ExitCode::internal, "a learning rate's peak was not chosen");
  // The linear scaling rule: Goyal and others, "Accurate, Large Minibatch SGD", 2017.
  if (options.reference_batch > 0) {
    peak_ *= static_cast<double>(batch_size) / options.reference_batch;
  }
}

double LearningRate::at(std::int64_t step, const ScheduleMemory& memory) const {
  if (step < warmup_) return peak_ * static_cast<double>(step + 1) / warmup_;
  const std::int64_t since_warmup = step - warmup_, length = std::max<std::int64_t>(steps_ - warmup_, 1);
  const double progress = std::min(1.0, static_cast<double>(since_warmup) / length);
  return schedule_.rate(settings_, {peak_, progress, step, steps_per_epoch_, since_warmup, length, memory});
}

bool LearningRate::follows_evaluation(std::int64_t steps) const {
  return schedule_.evaluated && steps >= warmup_;
}

void LearningRate::evaluated(bool improved, ScheduleMemory& memory) const {
  schedule_.evaluated(settings_, improved, memory);
}

}  // namespace lockstep::optim
