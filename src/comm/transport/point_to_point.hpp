// The collectives that need no arithmetic, made of send() and receive(), so that a missed deadline names the
// rank that was waited for. Meant for small data: start-up, agreement, parameters' digests.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "comm/transport/recorded.hpp"
#include "lockstep/communicator.hpp"

namespace lockstep::comm {

/// Tags from here on are the collectives' own.
inline constexpr int kFirstInternalTag = 1 << 20;

/// A broadcast from group[0] to all of `group`, by a binomial tree: nobody sends more messages than log2 of their
/// number, rounded up, so that a start does not take longer with each rank. Called by each of these ranks with the same
/// list; the tag is not used for anything else meanwhile.
void broadcast_in_group(Communicator& communicator, std::span<const int> group, std::span<std::byte> bytes, int tag,
                        const Operation& operation);

class PointToPointCommunicator : public Communicator, public Recorded {
 public:
  void barrier(const Operation& operation) override;
  void broadcast(std::span<std::byte> bytes, int root, const Operation& operation) override;
  /// Bruck's algorithm: in round i a rank passes on 2^i blocks, so it sends O(log size()) messages.
  void all_gather(std::span<const std::byte> in, std::span<std::byte> out, const Operation& operation) override;
  /// Adds in the order of the ranks, on rank 0.
  void all_reduce_sum(std::span<float> values, const Operation& operation) override;
  [[nodiscard]] std::shared_ptr<FlightRecorder> recorder() const override { return recorder_; }

 protected:
  const std::shared_ptr<FlightRecorder> recorder_ = std::make_shared<FlightRecorder>();
};

}  // namespace lockstep::comm
