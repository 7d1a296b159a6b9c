// Whether and when to restart after a failure. Pure.
//
// A run that makes progress between failures is restarted immediately, however often. One that does not is restarted
// after 1, 2, 4 ... seconds, at most `max` times.
#pragma once

#include <cstdint>

namespace lockstep::launch {

/// 64-74 and 76-78: the same command will fail again.
[[nodiscard]] constexpr bool is_permanent(int code) {
  return (code >= 64 && code <= 74) || (code >= 76 && code <= 78);
}

class RestartPolicy {
 public:
  /// `max`: restarts in a row without progress.
  explicit RestartPolicy(int max) : max_(max) {}

  struct Decision {
    bool again = false;
    double after_seconds = 0;
    int failures = 0;  ///< in a row, without progress
  };
  /// `step`: the highest step that the attempt has done; -1: none.
  Decision failed(std::int64_t step);
  /// An attempt has ended in order, for another number of ranks: what it has done is progress, too.
  void ended(std::int64_t step);

 private:
  int max_;
  int failures_ = 0;
  std::int64_t furthest_ = -1;
};

}  // namespace lockstep::launch
