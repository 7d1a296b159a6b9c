// The collectives that need no arithmetic, made of send() and receive(), so that a missed deadline names the
// rank that was waited for. Meant for small data: start-up, agreement, parameters' digests.
#pragma once

#include "comm/transport/recorded.hpp"

namespace lockstep::comm {

/// Tags from here on are the collectives' own.
inline constexpr int kFirstInternalTag = 1 << 20;

class PointToPointCommunicator : public Communicator, public Recorded {
 public:
  void barrier(const Operation& operation) override;
  void broadcast(std::span<std::byte> bytes, int root, const Operation& operation) override;
  /// Bruck's algorithm: in round i a rank passes on 2^i blocks, so it sends O(log size()) messages.
  void all_gather(std::span<const std::byte> in, std::span<std::byte> out, const Operation& operation) override;
  [[nodiscard]] std::shared_ptr<FlightRecorder> recorder() const override { return recorder_; }

 protected:
  const std::shared_ptr<FlightRecorder> recorder_ = std::make_shared<FlightRecorder>();
};

}  // namespace lockstep::comm
