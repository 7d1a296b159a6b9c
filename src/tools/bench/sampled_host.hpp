// One host of an imaginary cluster: its ranks run as threads of this process, with their real code; ranks of all other
// hosts are simulated. Messages to those are counted and dropped, and messages from them arrive at once: zeros. So the
// all-reduce of 16,384 ranks can be studied on a laptop.
#pragma once

#include <atomic>
#include <functional>
#include <utility>
#include <vector>

#include "comm/transport/thread_communicator.hpp"

namespace lockstep::bench {

class SampledCommunicator final : public comm::ThreadCommunicator {
 public:
  /// `beside`: the ranks of its host, including this one.
  SampledCommunicator(comm::ThreadWorld& world, int rank, std::vector<int> beside)
      : comm::ThreadCommunicator(world, rank), beside_(std::move(beside)) {}
  const std::vector<int>& beside() const { return beside_; }
  std::unique_ptr<Transfer> send(std::span<const std::byte> bytes, int to, int tag) override;
  std::unique_ptr<Transfer> receive(std::span<std::byte> bytes, int from, int tag,
                                    std::function<void()> notify) override;
  /// Only between the ranks of the host.
  void barrier(const Operation& operation) override;
  /// Blocks of other hosts' ranks are zeros.
  void all_gather(std::span<const std::byte> in, std::span<std::byte> out, const Operation& operation) override;
  /// Traffic to other hosts.
  TrafficCounters traffic() const override { return {0, network_bytes_, messages_}; }

 private:
  bool here(int other) const { return topology().same_host(rank(), other); }
  std::vector<int> beside_;
  std::atomic<std::uint64_t> network_bytes_{0}, messages_{0};
};

/// Runs `body` for each rank of `host`, each in its own thread, and rethrows the first error.
void run_sampled_host(const Topology& topology, int host, const std::function<void(SampledCommunicator&)>& body);

}  // namespace lockstep::bench
