// A single rank: collectives are copies, and there are no messages to others.
#include <algorithm>

#include "comm/transport/recorded.hpp"
#include "comm/transport/topology.hpp"
#include "lockstep/error.hpp"

namespace lockstep {

namespace {

class SingleCommunicator final : public Communicator, public comm::Recorded {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  const Topology& topology() const override { return topology_; }
  std::unique_ptr<Transfer> send(std::span<const std::byte>, int, int) override { nobody(); }
  std::unique_ptr<Transfer> receive(std::span<std::byte>, int, int, std::function<void()>) override { nobody(); }
  void barrier(const Operation&) override {}
  void broadcast(std::span<std::byte>, int, const Operation&) override {}
  void all_gather(std::span<const std::byte> in, std::span<std::byte> out, const Operation&) override {
    LOCKSTEP_CHECK(out.size() == in.size(), "all_gather: one block a rank");
    std::copy(in.begin(), in.end(), out.begin());
  }
  void all_reduce_sum(std::span<float>, const Operation&) override {}
  TrafficCounters traffic() const override { return {}; }
  std::shared_ptr<FlightRecorder> recorder() const override { return recorder_; }
  void abort(int exit_code) override {
    throw Error(static_cast<ExitCode>(exit_code), "the job was ended by its only rank");
  }

 private:
  [[noreturn]] static void nobody() { check_failed("size() > 1", __FILE__, __LINE__, "a single rank has no peer"); }
  std::shared_ptr<FlightRecorder> recorder_ = std::make_shared<FlightRecorder>();
  Topology topology_ = comm::make_topology({comm::host_identity()});
};

}  // namespace

std::unique_ptr<Communicator> make_single_communicator() {
  return std::make_unique<SingleCommunicator>();
}

}  // namespace lockstep
