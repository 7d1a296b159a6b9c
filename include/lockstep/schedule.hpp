// Schedules: the learning rate from the end of the warm-up to the end of the run.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lockstep/attributes.hpp"
#include "lockstep/registry.hpp"

namespace lockstep {

/// What a schedule that follows evaluations remembers of those since the warm-up. Checkpoints have it.
struct ScheduleMemory {
  std::int64_t without_improvement = 0;  ///< evaluations in a row
  std::int64_t cooldown = 0;             ///< evaluations from now on that do not count
  std::int64_t falls = 0;                ///< times that they have lowered the rate
  bool operator==(const ScheduleMemory&) const = default;
};

/// The point in the run that a rate is asked for.
struct ScheduleStep {
  double peak = 0;        ///< the rate at the end of the warm-up
  double progress = 0;    ///< 0 at the end of the warm-up, 1 at the end of the run
  std::int64_t step = 0;  ///< of the run, from 0, warm-up included
  std::int64_t steps_per_epoch = 1;
  std::int64_t since_warmup = 0;  ///< steps from the end of the warm-up to this one
  std::int64_t length = 1;        ///< steps from the end of the warm-up to the end of the run; at least 1
  ScheduleMemory memory;          ///< after the last evaluation
};

class ScheduleDef {
 public:
  static constexpr const char* kNoun = "schedule";
  std::string name;  ///< "cosine"
  std::string doc;   ///< one line
  int order = 100;   ///< position in messages and on pages; equal ones are sorted by name
  /// A number called `final` is the rate at the end of the run, one called `min_rate` the lowest: a job file may not
  /// set them above the peak. A text called `metric` is that of the evaluations which the schedule follows, and a
  /// number called `min_delta` by how much more a value of it must be better to be an improvement.
  std::vector<AttributeSpec> attributes;
  std::vector<AttributeCheck> checks;
  std::string shorthand;  ///< the attribute that a bare value sets; empty: none
  std::function<double(const Attributes& settings, const ScheduleStep& at)> rate;
  const char* missing() const { return rate ? "" : "rate"; }
  /// Follows an evaluation after the warm-up; `improved`: it is better than the best before. Null where there is no
  /// `metric`.
  std::function<void(const Attributes& settings, bool improved, ScheduleMemory& memory)> evaluated;
};

using ScheduleRegistry = Registry<ScheduleDef>;

}  // namespace lockstep
