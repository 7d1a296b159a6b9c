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

// A message: the flags as a double, then what a slot holds: the rank's values, then its shards'.
std::vector<double> packed(const ScalarExchange::Own& own) {
  std::vector<double> message = {static_cast<double>(own.flags)};
  message.insert(message.end(), own.rank_values.begin(), own.rank_values.end());
  message.insert(message.end(), own.values.begin(), own.values.end());
  return message;
}

// What a rank has given goes to its places in `all`.
class Placer {
 public:
  Placer(Scalars& all, const ScalarExchange::Own& own)
      : all_(all), per_rank_(std::ssize(own.rank_values)), per_shard_(own.per_shard) {}
  void place(int rank, const std::vector<int>& shards, const double* values) {
    std::copy_n(values, per_rank_, all_.rank_values.begin() + rank * per_rank_);
    values += per_rank_;
    for (const int shard : shards) {
      std::copy_n(values, per_shard_, all_.values.begin() + shard * per_shard_);
      values += per_shard_;
    }
  }

 private:
  Scalars& all_;
  std::ptrdiff_t per_rank_, per_shard_;
};

}  // namespace

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
    if (now >= start + kCheckPeers) recorder_.waits_for(peer, "its scalars have not come");
    mine.doorbell().wait(rings, std::min(now + kCheckPeers, start + operation.timeout), kSpin);
  }
}

Scalars ScalarExchange::run(std::span<const Region> regions, const Assignment& assignment, const Own& own,
                            const Operation& operation) {
  const Topology& topology = communicator_.topology();
  const int rank = communicator_.rank(), ranks = communicator_.size();
  const auto shards_of = [&](int r) -> const std::vector<int>& {
    return assignment.shards_of_rank[static_cast<std::size_t>(r)];
  };
  const auto per_shard = static_cast<std::size_t>(own.per_shard);
  LOCKSTEP_CHECK(own.values.size() == shards_of(rank).size() * per_shard,
                 "scalars: per_shard values for each shard of this rank");
  std::size_t shards = 0;
  for (const auto& list : assignment.shards_of_rank) shards += list.size();
  ++number_;

  const Region& mine = regions[static_cast<std::size_t>(topology.local_rank(rank))];
  double* slot_values = std::copy(own.rank_values.begin(), own.rank_values.end(), mine.scalars(number_));
  std::copy(own.values.begin(), own.values.end(), slot_values);
  mine.scalar_slot(number_).flags = own.flags;
  mine.scalar_slot(number_).ready.store(number_, std::memory_order_release);
  for (const Region& peer : regions) peer.doorbell().ring();

  const std::vector<double> message = packed(own);
  std::vector<std::vector<double>> heard(static_cast<std::size_t>(ranks));
  std::vector<std::unique_ptr<Transfer>> sent, received(static_cast<std::size_t>(ranks));
  for (int i = 1; i < ranks; ++i) {
    const int peer = (rank + i) % ranks;
    if (topology.same_host(rank, peer)) continue;
    auto& place = heard[static_cast<std::size_t>(peer)];
    place.resize(1 + own.rank_values.size() + shards_of(peer).size() * per_shard);
    received[static_cast<std::size_t>(peer)] =
        communicator_.receive(std::as_writable_bytes(std::span(place)), peer, kScalarTag);
    sent.push_back(communicator_.send(std::as_bytes(std::span(message)), peer, kScalarTag));
  }

  Scalars all;
  all.values.resize(shards * per_shard);
  all.rank_values.resize(own.rank_values.size() * static_cast<std::size_t>(ranks));
  Placer placer(all, own);
  for (int peer = 0; peer < ranks; ++peer) {
    if (topology.same_host(rank, peer)) {
      const Region& region = regions[static_cast<std::size_t>(topology.local_rank(peer))];
      const Region::ScalarSlot& slot = region.scalar_slot(number_);
      wait_for_peer(mine, slot, peer, operation);
      placer.place(peer, shards_of(peer), region.scalars(number_));
      all.flags |= slot.flags;
    } else {
      received[static_cast<std::size_t>(peer)]->wait(operation);
      const auto& values_heard = heard[static_cast<std::size_t>(peer)];
      placer.place(peer, shards_of(peer), values_heard.data() + 1);
      all.flags |= static_cast<std::uint32_t>(values_heard[0]);
    }
  }
  for (const auto& transfer : sent) transfer->wait(operation);
  return all;
}

}  // namespace lockstep::comm
