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

namespace lockstep::comm {

class ScalarExchange {
 public:
  explicit ScalarExchange(Communicator& communicator) : communicator_(communicator) {}
  /// `regions`: of this host's ranks, by local rank.
  [[nodiscard]] Scalars run(std::span<const Region> regions, const Assignment& assignment,
                            std::span<const double> values, int per_shard, std::uint32_t flags,
                            const Operation& operation);

 private:
  void place(Scalars& all, const std::vector<int>& shards, const double* values, int per_shard) const;
  void wait_for_peer(const Region& mine, const Region::ScalarSlot& slot, int peer, const Operation& operation);
  Communicator& communicator_;
  std::uint64_t number_ = 0;
};

}  // namespace lockstep::comm
