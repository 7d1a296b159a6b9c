// Death against hang: what the heartbeats of all ranks say. Pure: time comes in as seconds.
//
// A rank's process lives while its heartbeat comes; its work goes on while the beat's ticks grow. A rank hangs when
// either stands still for longer than max(limit, 20 x the median step), the work of all ranks together: one that
// waits for a slow one is no worse than the slow one, which ticks. Before the first step, when data are indexed and
// MPI starts, work has the start's limit instead. So nothing fires on a rank that is slow, stopped for some seconds,
// or one of hundreds on two cores.
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
  int peer = -1;              ///< whom it waits for
  std::string summary;        ///< what it is in
};

struct HangLimits {
  double seconds = 60;
  double steps = 20;  ///< median steps
  double start_seconds = 600;
};

/// Seconds between two heartbeats of a rank: hundreds of ranks need not say four times a second that they live, but
/// however many they are, several beats fit into the limit that a silent one is given.
[[nodiscard]] double beat_period(int ranks, const HangLimits& limits);

struct Hang {
  int rank = 0;
  double seconds = 0;
  bool silent = false;  ///< no heartbeat; else the heartbeat comes, but work stands still
};

class HangWatch {
 public:
  HangWatch(int ranks, HangLimits limits, double now);
  void connected(int rank, double now);
  void beat(int rank, double now, const Beat& beat);
  void left(int rank);
  void reached(std::int64_t step) { step_ = std::max(step_, step); }  ///< heard of sooner than by a beat
  [[nodiscard]] std::optional<Hang> check(double now) const;

  [[nodiscard]] bool all_connected() const;
  [[nodiscard]] std::int64_t step() const { return step_; }  ///< the most steps done by any rank; -1: none
  [[nodiscard]] double limit() const;                        ///< that holds now
  /// "rank 2: no heartbeat for 5.1 s; before: compute of step 17 ..."; one a line.
  [[nodiscard]] std::vector<std::string> states(double now) const;

 private:
  struct Rank {
    bool here = false, gone = false;
    double heard = 0;
    Beat beat;
  };
  [[nodiscard]] int most_suspect() const;
  HangLimits limits_;
  double moved_;  ///< when any rank's work went on
  std::int64_t step_ = -1;
  std::vector<Rank> ranks_;
};

}  // namespace lockstep::launch
