#include "launch/restart_policy.hpp"

#include <algorithm>
#include <cmath>

namespace lockstep::launch {

namespace {

constexpr double kLongestWait = 60;  ///< seconds

}  // namespace

RestartPolicy::Decision RestartPolicy::failed(std::int64_t step) {
  failures_ = step > furthest_ ? 1 : failures_ + 1;
  furthest_ = std::max(furthest_, step);
  const double wait = failures_ <= 1 ? 0 : std::min(std::ldexp(1.0, failures_ - 2), kLongestWait);
  return {failures_ <= max_, wait, failures_};
}

void RestartPolicy::ended(std::int64_t step) {
  if (step > furthest_) failures_ = 0;
  furthest_ = std::max(furthest_, step);
}

}  // namespace lockstep::launch
