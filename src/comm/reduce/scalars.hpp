// Gathers a step's scalars (losses, counts, flags). Ranks of one host exchange them through host memory. With several
// hosts, the first rank of each gathers its host's, the first ranks exchange all of them in log2(hosts) rounds (Bruck's
// all-gather), and each writes the result to its host's memory.
//
// Buffer reuse: gathering n writes slots n % 2. A rank starts n + 2 only after it has finished n + 1, for which every
// peer of its host (or the host's first rank, which needs every peer's scalars) must have finished reading n; so two
// slots are enough.
#pragma once

#include <span>
#include <vector>

#include "comm/reduce/gradient_reducer.hpp"
#include "comm/reduce/region.hpp"
#include "comm/transport/topology.hpp"
#include "core/flight_recorder.hpp"

namespace lockstep::comm {

class ScalarGather {
 public:
  ScalarGather(Communicator& communicator, const Hosts& hosts, FlightRecorder& recorder)
      : communicator_(communicator), hosts_(hosts), recorder_(recorder) {}
  /// `regions`: of this host's ranks, by local rank.
  [[nodiscard]] Scalars run(std::span<const Region> regions, const MicroBatchAssignment& assignment,
                            const OwnScalars& own, const Operation& operation);

 private:
  struct Call {
    std::span<const Region> regions;
    const MicroBatchAssignment& assignment;
    std::size_t per_rank, per_micro_batch;
    const Operation& operation;
    const std::vector<int>& micro_batches_of(int rank) const { return assignment.micro_batches_of_rank[rank]; }
  };
  const Region& own_region(const Call& call) const { return call.regions[hosts_.local_rank(communicator_.rank())]; }
  void publish(const Call& call, const OwnScalars& own) const;
  void note_wait(const Call& call, int peer) const;
  void wait_for(const Call& call, const Region::ScalarSlot& slot, int peer) const;
  void gather_host(const Call& call, Scalars& all) const;
  void all_gather_hosts(const Call& call, Scalars& all) const;
  void place(const Call& call, int rank, const double* values, Scalars& all) const;
  std::size_t doubles_of_host(const Call& call, int host) const;
  void pack(const Call& call, const Scalars& all, double* to) const;
  void unpack(const Call& call, int host, const double* values, Scalars& all) const;
  void broadcast_to_host(const Call& call, const Scalars& all) const;
  void receive_from_first_rank(const Call& call, Scalars& all) const;

  Communicator& communicator_;
  const Hosts& hosts_;
  FlightRecorder& recorder_;
  std::uint64_t number_ = 0;
};

}  // namespace lockstep::comm
