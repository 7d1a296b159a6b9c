// The exchange of a step's scalars (losses, counts, flags): through host memory between ranks of one host, by
// one message from each rank to each rank of another host.
//
// Buffer reuse: exchange n writes slot n % 2. A rank starts n + 2 only after it has finished n + 1, for which
// every peer had to finish reading n; so one slot more than the one in use is enough.
#pragma once

#include <span>
#include <vector>

#include "comm/exchange.hpp"
#include "comm/region.hpp"
#include "core/flight_recorder.hpp"

namespace lockstep::comm {

class ScalarExchange {
 public:
  ScalarExchange(Communicator& communicator, FlightRecorder& recorder)
      : communicator_(communicator), recorder_(recorder) {}
  /// What a rank gives: as many rank_values as every other, then per_shard values for each of its shards.
  struct Own {
    std::span<const double> rank_values, values;
    int per_shard = 0;
    std::uint32_t flags = 0;
  };
  /// `regions`: of this host's ranks, by local rank.
  [[nodiscard]] Scalars run(std::span<const Region> regions, const Assignment& assignment, const Own& own,
                            const Operation& operation);

 private:
  void wait_for_peer(const Region& mine, const Region::ScalarSlot& slot, int peer, const Operation& operation);
  Communicator& communicator_;
  FlightRecorder& recorder_;
  std::uint64_t number_ = 0;
};

}  // namespace lockstep::comm
