#include "optim/schedule.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace lockstep::optim {

std::int64_t to_steps(const Span& span, std::int64_t steps_per_epoch) {
  const double steps = span.epochs ? span.amount * static_cast<double>(steps_per_epoch) : span.amount;
  return std::llround(steps);
}

Schedule::Schedule(const LearningRateOptions& options, std::int64_t batch_size, std::int64_t steps,
                   std::int64_t steps_per_epoch)
    : options_(options),
      peak_(options.peak),
      steps_(steps),
      warmup_(to_steps(options.warmup, steps_per_epoch)),
      steps_per_epoch_(steps_per_epoch) {
  if (options.reference_batch > 0) {
    peak_ *= static_cast<double>(batch_size) / static_cast<double>(options.reference_batch);
  }
}

double Schedule::at(std::int64_t step) const {
  if (step < warmup_) return peak_ * static_cast<double>(step + 1) / static_cast<double>(warmup_);
  const double length = static_cast<double>(std::max<std::int64_t>(steps_ - warmup_, 1));
  const double progress = std::min(1.0, static_cast<double>(step - warmup_) / length);
  if (options_.schedule == "linear") return peak_ + (options_.final - peak_) * progress;
  if (options_.schedule == "cosine") {
    return options_.final + (peak_ - options_.final) * 0.5 * (1 + std::cos(std::numbers::pi * progress));
  }
  if (options_.schedule == "steps") {
    double rate = peak_;
    for (const Span& milestone : options_.milestones) {
      if (step >= to_steps(milestone, steps_per_epoch_)) rate *= options_.factor;
    }
    return rate;
  }
  return peak_;
}

}  // namespace lockstep::optim
