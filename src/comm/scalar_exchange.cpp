#include "comm/scalar_exchange.hpp"

#include <algorithm>

#include "comm/exchange_tags.hpp"
#include "comm/topology.hpp"
#include "lockstep/error.hpp"

namespace lockstep::comm {

namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr microseconds kSpin{20};
constexpr milliseconds kCheckPeers{100};

// A message: the flags as a double, then the values.
std::vector<double> packed(std::span<const double> values, std::uint32_t flags) {
  std::vector<double> message = {static_cast<double>(flags)};
  message.insert(message.end(), values.begin(), values.end());
  return message;
}

}  // namespace

void ScalarExchange::place(Scalars& all, const std::vector<int>& shards, const double* values, int per_shard) const {
  for (const int shard : shards) {
    std::copy_n(values, per_shard, all.values.begin() + std::ptrdiff_t{shard} * per_shard);
    values += per_shard;
  }
}

void ScalarExchange::wait_for_peer(const Region& mine, const Region::ScalarSlot& slot, int peer,
                                   const Operation& operation) {
  const auto start = Clock::now();
  while (true) {
    const std::uint32_t rings = mine.doorbell().rings();
    if (slot.ready.load(std::memory_order_acquire) >= number_) return;
    const auto now = Clock::now();
    if (now >= start + operation.timeout) {
      throw_deadline(communicator_.topology(), communicator_.rank(), peer, operation, seconds_since(start));
    }
    communicator_.check_peers();
    mine.doorbell().wait(rings, std::min(now + kCheckPeers, start + operation.timeout), kSpin);
  }
}

Scalars ScalarExchange::run(std::span<const Region> regions, const Assignment& assignment,
                            std::span<const double> values, int per_shard, std::uint32_t flags,
                            const Operation& operation) {
  const Topology& topology = communicator_.topology();
  const int rank = communicator_.rank(), ranks = communicator_.size();
  const auto shards_of = [&](int r) -> const std::vector<int>& {
    return assignment.shards_of_rank[static_cast<std::size_t>(r)];
  };
  LOCKSTEP_CHECK(values.size() == shards_of(rank).size() * static_cast<std::size_t>(per_shard),
                 "scalars: per_shard values for each shard of this rank");
  std::size_t shards = 0;
  for (const auto& list : assignment.shards_of_rank) shards += list.size();
  ++number_;

  const Region& mine = regions[static_cast<std::size_t>(topology.local_rank(rank))];
  std::copy(values.begin(), values.end(), mine.scalars(number_));
  mine.scalar_slot(number_).flags = flags;
  mine.scalar_slot(number_).ready.store(number_, std::memory_order_release);
  for (const Region& peer : regions) peer.doorbell().ring();

  const std::vector<double> message = packed(values, flags);
  std::vector<std::vector<double>> heard(static_cast<std::size_t>(ranks));
  std::vector<std::unique_ptr<Transfer>> sent, received(static_cast<std::size_t>(ranks));
  for (int i = 1; i < ranks; ++i) {
    const int peer = (rank + i) % ranks;
    if (topology.same_host(rank, peer)) continue;
    auto& place = heard[static_cast<std::size_t>(peer)];
    place.resize(1 + shards_of(peer).size() * static_cast<std::size_t>(per_shard));
    received[static_cast<std::size_t>(peer)] =
        communicator_.receive(std::as_writable_bytes(std::span(place)), peer, kScalarTag);
    sent.push_back(communicator_.send(std::as_bytes(std::span(message)), peer, kScalarTag));
  }

  Scalars all;
  all.values.resize(shards * static_cast<std::size_t>(per_shard));
  for (int peer = 0; peer < ranks; ++peer) {
    if (topology.same_host(rank, peer)) {
      const Region& region = regions[static_cast<std::size_t>(topology.local_rank(peer))];
      const Region::ScalarSlot& slot = region.scalar_slot(number_);
      wait_for_peer(mine, slot, peer, operation);
      place(all, shards_of(peer), region.scalars(number_), per_shard);
      all.flags |= slot.flags;
    } else {
      received[static_cast<std::size_t>(peer)]->wait(operation);
      const auto& values_heard = heard[static_cast<std::size_t>(peer)];
      place(all, shards_of(peer), values_heard.data() + 1, per_shard);
      all.flags |= static_cast<std::uint32_t>(values_heard[0]);
    }
  }
  for (const auto& transfer : sent) transfer->wait(operation);
  return all;
}

}  // namespace lockstep::comm
