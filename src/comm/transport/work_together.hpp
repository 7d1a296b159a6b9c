// Work of unknown duration that all ranks wait for: looking for checkpoints, reading and hashing them, evaluating. A
// fixed deadline would mistake a large model, a slow disk or a slow rank for a hang; instead, a rank is given up only
// when its work makes no progress.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/flight_recorder.hpp"
#include "lockstep/communicator.hpp"

namespace lockstep::comm {

/// Asked by the calling thread whether the program should stop, e.g. after a signal; empty: never.
using StopPoll = std::function<bool()>;

/// Thrown in work that has been stopped. work_together() makes it an Error on all ranks.
struct WorkStopped {};

/// Progress that the work reports, read by the thread that waits for it; and what that thread tells the work.
class WorkProgress {
 public:
  explicit WorkProgress(std::shared_ptr<FlightRecorder> recorder) : recorder_(std::move(recorder)) {}
  /// Call when some more has been read or computed.
  void advance();
  std::uint64_t advances() const { return advances_.load(); }

  /// True once a rank's StopPoll has returned true: the work should return soon, done or not.
  const std::atomic<bool>& stopped() const { return stopped_; }
  /// advance(), for work that is of no use unless it is done: throws WorkStopped once stopped().
  void advance_or_stop();
  void stop() { stopped_ = true; }

 private:
  std::shared_ptr<FlightRecorder> recorder_;  ///< may be null; its ticks keep the supervisor from detecting a hang
  std::atomic<std::uint64_t> advances_{0};
  std::atomic<bool> stopped_{false};
};

/// After this long without progress, a disk is considered lost.
inline constexpr std::chrono::minutes kStalledWork{10};

struct WorkOptions {
  std::chrono::milliseconds stalled = kStalledWork;
  StopPoll stop = {};
};

/// Collective: runs `work` on each rank and returns when it is done on all of them, with each rank's result. It runs on
/// a thread of its own, and must not use the communicator's collectives. An exception is
/// thrown on its own rank only. Throws Error(infrastructure) on one rank if another's work has made no progress for
/// `stalled`. If `stop` returns true on one rank, the work of all ranks is told within a second
/// (WorkProgress::stopped), unless it has already returned; if one then throws WorkStopped, all ranks throw
/// Error(interrupted).
std::vector<bool> work_together(Communicator& communicator, const Operation& operation,
                                const std::function<bool(WorkProgress&)>& work, const WorkOptions& options = {});

/// The same if only rank 0 has work.
void work_of_first_rank(Communicator& communicator, const Operation& operation,
                        const std::function<void(WorkProgress&)>& work, const WorkOptions& options = {});

}  // namespace lockstep::comm
