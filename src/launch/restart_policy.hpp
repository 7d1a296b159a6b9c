// Whether and when to start again after a failure. Pure.
//
// A run that gets further between failures is started again at once, however often. One that does not is started
// again after 1, 2, 4 ... seconds, `most` times.
#pragma once

#include <cstdint>

namespace lockstep::launch {

/// 64-74 and 76-78: the same command will fail again.
[[nodiscard]] constexpr bool is_permanent(int code) {
  return (code >= 64 && code <= 74) || (code >= 76 && code <= 78);
}

class RestartPolicy {
 public:
  /// `most`: restarts in a row that get no further.
  explicit RestartPolicy(int most) : most_(most) {}

  struct Decision {
    bool again = false;
    double after_seconds = 0;
    int failures = 0;  ///< in a row, none of which got further
  };
  /// `step`: how far the attempt came; -1: not to its first step.
  Decision failed(std::int64_t step);

 private:
  int most_;
  int failures_ = 0;
  std::int64_t furthest_ = -1;
};

}  // namespace lockstep::launch
