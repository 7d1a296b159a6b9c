// Pulse: whether anything still moves among ranks that wait for each other, as those of a pipeline do.
//
// A rank may wait long for a healthy one that waits in its turn, so a deadline for each message would blame the wrong
// rank. Instead, ranks tell their peers when they have made progress, and pass on what they hear, so that a wait
// expires only when nothing has moved anywhere for the timeout. They also say whom they wait for, so the rank that is
// blamed is the one at the end of the chain. As long as waits are shorter than a quarter of the timeout, a rank sends
// at most four signs per timeout to each peer.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "core/spans.hpp"
#include "lockstep/communicator.hpp"

namespace lockstep::comm {

class Pulse final : public WaitWatch {
 public:
  using Now = std::function<Clock::time_point()>;

  /// `peers`: the other ranks that this one exchanges messages with; each has this one among its own. `ranks` must
  /// outlive it.
  Pulse(
      Communicator& ranks, const std::vector<int>& peers, std::chrono::milliseconds timeout,
      Now now = [] { return Clock::now(); });

  /// This rank has computed something, or got what it waited for. Cheap; called by any thread.
  void moved();
  /// Called now and then while this rank waits for `peer`, -1: for no peer. When any rank has last moved, as far as is
  /// known here.
  [[nodiscard]] Clock::time_point last_progress(int peer) override;
  /// The rank that this rank's wait for `peer` is for in the end.
  [[nodiscard]] int blamed(int peer) override;

  /// Collective, when there is nothing to wait for any more: receives what peers may still have sent.
  void close();

 private:
  struct Sign {
    double silent = 0;      ///< seconds since the last progress that its sender knows of
    std::int32_t at = 0;    ///< the rank that its sender waits for in the end; the sender, if it does not wait
    std::int32_t last = 0;  ///< 1: no other sign follows
  };
  struct Peer {
    int rank = 0, at = 0;
    bool closed = false;
    Sign in, out;
    std::unique_ptr<Transfer> receive, sent;
  };

  void post(Peer& peer);
  void take(Peer& peer, Clock::time_point now);
  void drain(Clock::time_point now);
  void tell(Clock::time_point now, Clock::time_point progress, int at);
  int end_of_chain(int peer) const;

  Communicator& ranks_;
  const Clock::duration quarter_;
  const std::chrono::milliseconds timeout_;
  const Now now_;
  std::atomic<Clock::time_point> moved_, told_;
  std::atomic<int> told_at_;
  std::mutex mutex_;
  Clock::time_point heard_;
  std::vector<std::unique_ptr<Peer>> peers_;  ///< transfers refer to their signs
};

}  // namespace lockstep::comm
