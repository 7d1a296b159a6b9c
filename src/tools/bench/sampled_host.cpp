#include "tools/bench/sampled_host.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "comm/transport/topology.hpp"
#include "lockstep/error.hpp"

namespace lockstep::bench {

namespace {

constexpr int kGatherTag = comm::kFirstInternalTag + 17;

/// Receives zeros. They are written when completion is checked, not when the receive is posted, as with a real network.
class ZerosTransfer final : public Transfer {
 public:
  explicit ZerosTransfer(std::span<std::byte> bytes) : bytes_(bytes) {}
  [[nodiscard]] bool done() override {
    std::fill(bytes_.begin(), bytes_.end(), std::byte{0});
    bytes_ = {};
    return true;
  }
  void wait(const Operation&) override { (void)done(); }

 private:
  std::span<std::byte> bytes_;
};

}  // namespace

std::unique_ptr<Transfer> SampledCommunicator::send(std::span<const std::byte> bytes, int to, int tag) {
  if (here(to)) return comm::ThreadCommunicator::send(bytes, to, tag);
  network_bytes_ += bytes.size();
  ++messages_;
  return std::make_unique<comm::SentTransfer>();
}

std::unique_ptr<Transfer> SampledCommunicator::receive(std::span<std::byte> bytes, int from, int tag,
                                                       std::function<void()> notify) {
  if (here(from)) return comm::ThreadCommunicator::receive(bytes, from, tag, std::move(notify));
  if (notify) notify();
  return std::make_unique<ZerosTransfer>(bytes);
}

void SampledCommunicator::barrier(const Operation& operation) {
  const std::array<std::byte, 1> token{};
  std::vector<std::byte> heard(size());
  all_gather(token, heard, operation);
}

void SampledCommunicator::all_gather(std::span<const std::byte> in, std::span<std::byte> out,
                                     const Operation& operation) {
  LOCKSTEP_CHECK(out.size() == in.size() * static_cast<std::size_t>(size()), "all_gather: one block a rank");
  std::fill(out.begin(), out.end(), std::byte{0});
  for (const int peer : beside_) send(in, peer, kGatherTag)->wait(operation);
  for (const int peer : beside_) {
    receive(out.subspan(peer * in.size(), in.size()), peer, kGatherTag, {})->wait(operation);
  }
}

void run_sampled_host(const Topology& topology, int host, const std::function<void(SampledCommunicator&)>& body) {
  comm::ThreadWorld world(topology);
  const auto ranks = comm::Hosts(topology).ranks(host);
  comm::run_ranks(world, ranks, [&](int rank) {
    SampledCommunicator communicator(world, rank, ranks);
    body(communicator);
  });
}

}  // namespace lockstep::bench
