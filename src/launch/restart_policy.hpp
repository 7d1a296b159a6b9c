// Whether and when to restart after a failure. Pure.
//
// A run that makes progress between failures is restarted immediately, however often. One that does not is restarted
// after 1, 2, 4 ... seconds, each a quarter more or less, so that launches which one outage has ended do not all come
// back at the same moment. It is given up after some restarts, and where the fault may pass by itself, not before a
// time is over either.
#pragma once

#include <cstdint>
#include <random>

namespace lockstep::launch {

/// 64-74 and 76-78: the same command will fail again.
[[nodiscard]] constexpr bool is_permanent(int code) {
  return (code >= 64 && code <= 74) || (code >= 76 && code <= 78);
}

struct RestartLimits {
  int restarts = 3;            ///< in a row without progress; 0: none at all
  double passing_seconds = 0;  ///< from the first of these failures on, while the fault may pass
};

class RestartPolicy {
 public:
  /// `seed`: of the delays.
  RestartPolicy(const RestartLimits& limits, std::uint64_t seed) : limits_(limits), random_(seed) {}

  struct Decision {
    bool again = false;
    double after_seconds = 0;
    int failures = 0;  ///< in a row, without progress
  };
  /// `step`: the highest step that the attempt has done; -1: none. `now`: seconds on any clock. `passing`: the fault
  /// may pass by itself.
  Decision failed(std::int64_t step, double now, bool passing);
  /// An attempt has ended in order, for another number of ranks: what it has done is progress, too.
  void ended(std::int64_t step);

 private:
  RestartLimits limits_;
  std::mt19937_64 random_;
  int failures_ = 0;
  double since_ = 0;  ///< the first of these
  std::int64_t furthest_ = -1;
};

}  // namespace lockstep::launch
