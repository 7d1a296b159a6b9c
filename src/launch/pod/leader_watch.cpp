#include "launch/pod/leader_watch.hpp"

#include <utility>

#include "core/trace.hpp"
#include "launch/processes.hpp"

namespace lockstep::launch {

LeaderWatch::LeaderWatch(std::vector<std::string> probe, double limit) : probe_(std::move(probe)) {
  if (limit > 0) absence_.emplace(limit, steady_seconds());
}

bool LeaderWatch::lost() {
  if (!absence_) return false;
  const double now = steady_seconds();
  if (asked_) {
    if (const auto code = asked_->poll()) {
      if (*code == 0) absence_->seen(now);
      asked_.reset();
    }
  }
  if (!asked_ && now >= next_look_) look(now);
  return absence_->over(now);
}

void LeaderWatch::look(double now) {
  next_look_ = now + absence_->look_every();
  if (launch_processes_here().empty()) {
    asked_.emplace(probe_, ChildOptions{"/dev/null", {}});
  } else {
    absence_->seen(now);
  }
}

}  // namespace lockstep::launch
