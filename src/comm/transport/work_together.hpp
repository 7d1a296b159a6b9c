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

/// Progress that the work reports; read by the thread that waits for it.
class WorkProgress {
 public:
  explicit WorkProgress(std::shared_ptr<FlightRecorder> recorder) : recorder_(std::move(recorder)) {}
  /// Call when some more has been read or computed.
  void advance();
  [[nodiscard]] std::uint64_t advances() const { return advances_.load(); }

 private:
  std::shared_ptr<FlightRecorder> recorder_;  ///< may be null; its ticks keep the supervisor from detecting a hang
  std::atomic<std::uint64_t> advances_{0};
};

/// After this long without progress, a disk is considered lost.
inline constexpr std::chrono::minutes kStalledWork{10};

/// Collective: runs `work` on each rank and returns when it is done on all of them, with each rank's result. With
/// several ranks it runs on a thread of its own, and must not use the communicator's collectives. An exception is
/// thrown on its own rank only. Throws Error(infrastructure) on one rank if another's work has made no progress for
/// `stalled`.
std::vector<bool> work_together(Communicator& communicator, const Operation& operation,
                                const std::function<bool(WorkProgress&)>& work,
                                std::chrono::milliseconds stalled = kStalledWork);

/// The same if only rank 0 has work.
void work_of_first_rank(Communicator& communicator, const Operation& operation, const std::function<void()>& work);

}  // namespace lockstep::comm
