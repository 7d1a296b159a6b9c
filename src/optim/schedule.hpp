// The learning rate as a function of the step.
#pragma once

#include <cstdint>

#include "lockstep/job.hpp"

namespace lockstep::optim {

/// Spans of the job in steps: `epochs` are rounded to the nearest step.
[[nodiscard]] std::int64_t to_steps(const Span& span, std::int64_t steps_per_epoch);

class Schedule {
 public:
  /// `steps`: of the whole run; cosine and linear end there.
  Schedule(const LearningRateOptions& options, std::int64_t batch_size, std::int64_t steps,
           std::int64_t steps_per_epoch);

  /// Rate of step 0, 1, ... Warm-up rises linearly and reaches the peak at its last step.
  [[nodiscard]] double at(std::int64_t step) const;
  [[nodiscard]] double peak() const { return peak_; }

 private:
  LearningRateOptions options_;
  double peak_;
  std::int64_t steps_, warmup_, steps_per_epoch_;
};

}  // namespace lockstep::optim
