// Detects hangs from the heartbeats of all ranks. Pure: time is passed in as seconds.
//
// A rank's process is alive while its heartbeat arrives; it makes progress while the ticks in the heartbeat grow. A
// rank hangs if it is silent for longer than max(limit, 20 x the median step), or if no rank at all makes progress for
// that long: a rank that waits for a slow one does not hang as long as the slow one ticks. Before the first step, when
// data are indexed and MPI starts, the limit for progress is the start's instead. So there is no false alarm for a rank
// that is slow, stopped for some seconds, or one of hundreds on two cores.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::launch {

struct Beat {
  std::uint64_t ticks = 0;
  std::int64_t step = -1;     ///< steps done; -1: none yet
  double median_seconds = 0;  ///< of a step
  int peer = -1;              ///< the rank that it waits for
  std::string summary;        ///< its current operation
};

struct HangLimits {
  double seconds = 60;
  double steps = 20;  ///< in median steps
  double start_seconds = 600;
};

/// Seconds between two heartbeats of a rank: longer with hundreds of ranks, but several beats always fit into the limit
/// for a silent one.
[[nodiscard]] double beat_period(int ranks, const HangLimits& limits);

struct Hang {
  int rank = 0;
  double seconds = 0;
  bool silent = false;  ///< true: no heartbeat; false: heartbeats arrive, but there is no progress
};

class HangWatch {
 public:
  HangWatch(int ranks, HangLimits limits, double now);
  void connected(int rank, double now);
  void beat(int rank, double now, const Beat& beat);
  void left(int rank);
  /// For a step that is known before its heartbeat.
  void reached(std::int64_t step) { step_ = std::max(step_, step); }
  std::optional<Hang> check(double now) const;

  bool all_connected() const;
  std::int64_t step() const { return step_; }  ///< the highest step done by any rank; -1: none
  double limit() const;                        ///< the current limit
  /// "rank 2: no heartbeat for 5.1 s; before: compute of step 17 ...", one line per rank.
  std::vector<std::string> states(double now) const;

 private:
  struct Rank {
    bool here = false, gone = false;
    double heard = 0;
    Beat beat;
  };
  int most_suspect() const;
  HangLimits limits_;
  double moved_;  ///< time of the latest progress of any rank
  std::int64_t step_ = -1;
  std::vector<Rank> ranks_;
};

}  // namespace lockstep::launch
