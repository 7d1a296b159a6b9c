// How many threads load, and how far ahead: decided from the time that the step waited. The result of a run
// never depends on it.
//
// After each window of gets: waited more than 2 % of the time: a thread more and twice the depth. No wait to
// speak of for 16 windows: a thread less; if that brings waiting back, the thread stays from then on.
#pragma once

#include <cstdint>

namespace lockstep::data {

struct PrefetchLimits {
  int threads = 0;  ///< fixed; 0: tuned between 1 and max_threads
  int depth = 0;    ///< fixed; 0: tuned between 2 and max_depth
  int max_threads = 1;
  int max_depth = 64;
};

class PrefetchTuner {
 public:
  explicit PrefetchTuner(const PrefetchLimits& limits);
  /// One get() that ended at `now` (seconds of any clock) after it had waited for `waited` seconds.
  void record(double now, double waited);
  [[nodiscard]] int threads() const { return threads_; }
  [[nodiscard]] int depth() const { return depth_; }

 private:
  void decide(double share);
  void grow();
  PrefetchLimits limits_;
  int threads_, depth_;
  int fewest_threads_ = 1;
  int gets_ = 0, calm_ = 0;
  bool warm_ = false, shrunk_ = false;
  double start_ = -1, waited_ = 0;
};

}  // namespace lockstep::data
