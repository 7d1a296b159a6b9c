// The collectives that need no arithmetic, built from send() and receive(), so that a missed deadline names the rank
// that was waited for. Meant for small data: start-up, agreement, digests of parameters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "comm/transport/recorded.hpp"
#include "lockstep/communicator.hpp"

namespace lockstep::comm {

/// Tags from here on are reserved for the collectives.
inline constexpr int kFirstInternalTag = 1 << 20;

/// Broadcasts from group[0] to all of `group`, along a binomial tree: no rank sends more than log2 of their number of
/// messages, rounded up, so that start-up time does not grow with every rank. Called by each of these ranks with the
/// same list; the tag must not be used for anything else meanwhile.
void broadcast_in_group(Communicator& communicator, std::span<const int> group, std::span<std::byte> bytes, int tag,
                        const Operation& operation);

/// The root's text, of any length, on every rank. Collective.
[[nodiscard]] std::string broadcast_text(Communicator& communicator, std::string text, int root,
                                         const Operation& operation);

/// Adds the ranks' numbers, which are exact in any order: up a binomial tree, and down again. So no rank has more than
/// two ranks' numbers at a time. Collective.
void all_reduce_sum(Communicator& communicator, std::span<std::int64_t> numbers, const Operation& operation);

class PointToPointCommunicator : public Communicator, public Recorded {
 public:
  void barrier(const Operation& operation) override;
  void broadcast(std::span<std::byte> bytes, int root, const Operation& operation) override;
  /// Bruck's algorithm: in round i a rank passes on 2^i blocks, so it sends O(log size()) messages.
  void all_gather(std::span<const std::byte> in, std::span<std::byte> out, const Operation& operation) override;
  /// Adds in rank order, on rank 0.
  void all_reduce_sum(std::span<float> values, const Operation& operation) override;
  std::shared_ptr<FlightRecorder> recorder() const override { return recorder_; }

 protected:
  const std::shared_ptr<FlightRecorder> recorder_ = std::make_shared<FlightRecorder>();
};

}  // namespace lockstep::comm
