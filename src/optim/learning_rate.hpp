// The learning rate as a function of the step: linear warm-up, then the job's schedule.
#pragma once

#include <cstdint>

#include "lockstep/job.hpp"
#include "lockstep/schedule.hpp"

namespace lockstep::optim {

class LearningRate {
 public:
  /// `steps`: of the whole run. The registry must outlive it.
  LearningRate(const LearningRateOptions& options, const ScheduleRegistry& schedules, std::int64_t batch_size,
               std::int64_t steps, std::int64_t steps_per_epoch);

  /// The rate of step 0, 1, ... The warm-up rises linearly and reaches the peak at its last step.
  [[nodiscard]] double at(std::int64_t step) const;
  [[nodiscard]] double peak() const { return peak_; }

 private:
  const ScheduleDef& schedule_;
  Attributes settings_;
  double peak_;
  std::int64_t steps_, warmup_, steps_per_epoch_;
};

}  // namespace lockstep::optim
