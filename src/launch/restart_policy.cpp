#include "launch/restart_policy.hpp"

#include <algorithm>
#include <cmath>

namespace lockstep::launch {

namespace {

constexpr double kLongestWait = 60;  ///< seconds
constexpr double kJitter = 0.25;     ///< of a wait, at most, in both directions

}  // namespace

RestartPolicy::Decision RestartPolicy::failed(std::int64_t step, double now, bool passing) {
  failures_ = step > furthest_ ? 1 : failures_ + 1;
  if (failures_ == 1) since_ = now;
  furthest_ = std::max(furthest_, step);
  const double wait = failures_ <= 1 ? 0 : std::min(std::ldexp(1.0, failures_ - 2), kLongestWait);
  const double drawn = std::ldexp(static_cast<double>(random_() >> 11), -53);  // the same with every library
  const bool in_time = passing && limits_.restarts > 0 && now - since_ < limits_.passing_seconds;
  return {failures_ <= limits_.restarts || in_time, wait * (1 - kJitter + 2 * kJitter * drawn), failures_};
}

void RestartPolicy::ended(std::int64_t step) {
  if (step > furthest_) failures_ = 0;
  furthest_ = std::max(furthest_, step);
}

}  // namespace lockstep::launch
