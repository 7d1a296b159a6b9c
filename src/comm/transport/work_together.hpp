// Work of unknown length that all ranks wait for: looking for checkpoints, reading and hashing them, evaluating. A
// deadline for it would call a large model, a slow disk or a slow rank a hang; instead a rank is given up only when its
// work makes no progress.
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

/// Reported by the work as it goes on; read by the thread that waits for it.
class WorkProgress {
 public:
  explicit WorkProgress(std::shared_ptr<FlightRecorder> recorder) : recorder_(std::move(recorder)) {}
  /// Some more was read or computed.
  void advance();
  [[nodiscard]] std::uint64_t advances() const { return advances_.load(); }

 private:
  std::shared_ptr<FlightRecorder> recorder_;  ///< may be null; its ticks keep a supervisor from seeing a hang
  std::atomic<std::uint64_t> advances_{0};
};

/// Without progress for so long, a disk is taken to be gone.
inline constexpr std::chrono::minutes kStalledWork{10};

/// Collective: runs `work` on each rank and returns when it is done on all of them, with what it returned on each.
/// With several ranks it runs in a thread of its own, and must not use the communicator's collectives. What it throws
/// is thrown on that rank alone. Throws Error(infrastructure) on one rank where another's work has stood still for
/// `stalled`.
std::vector<bool> work_together(Communicator& communicator, const Operation& operation,
                                const std::function<bool(WorkProgress&)>& work,
                                std::chrono::milliseconds stalled = kStalledWork);

/// The same where only rank 0 has work.
void work_of_first_rank(Communicator& communicator, const Operation& operation, const std::function<void()>& work);

}  // namespace lockstep::comm
