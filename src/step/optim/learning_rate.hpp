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

  /// The rate of step 0, 1, ... The warm-up rises linearly and reaches the peak at its last step. `memory`: of a
  /// schedule that follows evaluations.
  double at(std::int64_t step, const ScheduleMemory& memory = {}) const;
  /// Whether the schedule follows an evaluation after this many steps: by metric(), where a value is an improvement if
  /// it is better by more than min_delta().
  bool follows_evaluation(std::int64_t steps) const;
  const std::string& metric() const { return settings_.text("metric"); }
  double min_delta() const { return settings_.has("min_delta") ? settings_.number("min_delta") : 0; }
  /// After an evaluation that it follows.
  void evaluated(bool improved, ScheduleMemory& memory) const;
  double peak() const { return peak_; }

 private:
  const ScheduleDef& schedule_;
  Attributes settings_;
  double peak_;
  std::int64_t steps_, warmup_, steps_per_epoch_;
};

}  // namespace lockstep::optim
