#include "comm/reduce/scalars.hpp"

#include <algorithm>

#include "comm/reduce/rank_reducer.hpp"
#include "comm/transport/topology.hpp"
#include "core/ran_time.hpp"
#include "lockstep/error.hpp"

namespace lockstep::comm {

namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr microseconds kScalarSpin{20};
constexpr milliseconds kCheckScalarPeers{100};

}  // namespace

Scalars ScalarGather::run(std::span<const Region> regions, const MicroBatchAssignment& assignment,
                          const OwnScalars& own, const Operation& operation) {
  const Call call{regions, assignment, own.of_rank.size(), static_cast<std::size_t>(own.per_micro_batch), operation};
  LOCKSTEP_CHECK(
      own.of_micro_batches.size() == call.micro_batches_of(communicator_.rank()).size() * call.per_micro_batch,
      "scalars: per_micro_batch values for each micro-batch of this rank");
  std::size_t micro_batches = 0;
  for (const auto& list : assignment.micro_batches_of_rank) micro_batches += list.size();
  Scalars all;
  all.values.resize(micro_batches * call.per_micro_batch);
  all.rank_values.resize(call.per_rank * assignment.micro_batches_of_rank.size());
  ++number_;
  publish(call, own);
  if (hosts_.count() == 1) {
    gather_host(call, all);
  } else if (hosts_.local_rank(communicator_.rank()) == 0) {
    gather_host(call, all);
    all_gather_hosts(call, all);
    broadcast_to_host(call, all);
  } else {
    receive_from_first_rank(call, all);
  }
  return all;
}

void ScalarGather::publish(const Call& call, const OwnScalars& own) const {
  const Region& mine = own_region(call);
  double* values = std::copy(own.of_rank.begin(), own.of_rank.end(), mine.scalars(number_));
  std::copy(own.of_micro_batches.begin(), own.of_micro_batches.end(), values);
  Region::ScalarSlot& slot = mine.scalar_slot(number_);
  slot.flags = own.flags;
  slot.ready.store(number_, std::memory_order_release);
  if (hosts_.count() > 1) return call.regions[0].doorbell().ring();
  for (const Region& peer : call.regions) peer.doorbell().ring();
}

// Tells the other ranks of the host, which wait for the first one, which rank that one is waiting for.
void ScalarGather::note_wait(const Call& call, int peer) const {
  if (hosts_.count() > 1) call.regions[0].all_scalar_slot(number_).waits_for = peer;
}

void ScalarGather::wait_for(const Call& call, const Region::ScalarSlot& slot, int peer) const {
  Doorbell& doorbell = own_region(call).doorbell();
  const auto start = Clock::now();
  auto last_progress = start;
  RanTime ran(start);
  while (true) {
    const std::uint32_t rings = doorbell.rings();
    if (slot.ready.load(std::memory_order_acquire) >= number_) return;
    last_progress = latest_progress(last_progress, call.operation.watch);
    const auto now = Clock::now();
    (void)ran.look(now);
    const auto end = last_progress + ran.stopped() + call.operation.timeout;
    if (now >= end) {
      const int missing = slot.waits_for >= 0 ? slot.waits_for.load() : peer;
      throw_deadline(communicator_.topology(), communicator_.rank(), missing, call.operation,
                     seconds_since(last_progress));
    }
    communicator_.check_peers();
    if (now >= start + kCheckScalarPeers) recorder_.waits_for(peer, "its scalars have not come");
    doorbell.wait(rings, std::min(now + kCheckScalarPeers, end), kScalarSpin);
  }
}

// Copies a rank's values to their positions in `all`.
void ScalarGather::place(const Call& call, int rank, const double* values, Scalars& all) const {
  std::copy_n(values, call.per_rank, all.rank_values.begin() + rank * static_cast<std::ptrdiff_t>(call.per_rank));
  values += call.per_rank;
  for (const int micro_batch : call.micro_batches_of(rank)) {
    std::copy_n(values, call.per_micro_batch,
                all.values.begin() + micro_batch * static_cast<std::ptrdiff_t>(call.per_micro_batch));
    values += call.per_micro_batch;
  }
}

void ScalarGather::gather_host(const Call& call, Scalars& all) const {
  for (const int peer : hosts_.ranks(hosts_.host_of(communicator_.rank()))) {
    const Region& region = call.regions[hosts_.local_rank(peer)];
    const Region::ScalarSlot& slot = region.scalar_slot(number_);
    note_wait(call, peer);
    wait_for(call, slot, peer);
    place(call, peer, region.scalars(number_), all);
    all.flags |= slot.flags;
  }
}

// Size of a host's message: the flags as a double, then for each rank its values and those of its micro-batches.
std::size_t ScalarGather::doubles_of_host(const Call& call, int host) const {
  std::size_t doubles = 1;
  for (const int rank : hosts_.ranks(host))
    doubles += call.per_rank + call.micro_batches_of(rank).size() * call.per_micro_batch;
  return doubles;
}

void ScalarGather::pack(const Call& call, const Scalars& all, double* to) const {
  *to++ = all.flags;
  for (const int rank : hosts_.ranks(hosts_.host_of(communicator_.rank()))) {
    to = std::copy_n(all.rank_values.begin() + rank * static_cast<std::ptrdiff_t>(call.per_rank), call.per_rank, to);
    for (const int micro_batch : call.micro_batches_of(rank)) {
      to = std::copy_n(all.values.begin() + micro_batch * static_cast<std::ptrdiff_t>(call.per_micro_batch),
                       call.per_micro_batch, to);
    }
  }
}

void ScalarGather::unpack(const Call& call, int host, const double* values, Scalars& all) const {
  all.flags |= static_cast<std::uint32_t>(*values++);
  for (const int rank : hosts_.ranks(host)) {
    place(call, rank, values, all);
    values += call.per_rank + call.micro_batches_of(rank).size() * call.per_micro_batch;
  }
}

// Bruck's algorithm among the first ranks of the hosts: `held` has the values of hosts own, own + 1, ... as far as they
// have been received; each round passes on all of it, and so doubles it.
void ScalarGather::all_gather_hosts(const Call& call, Scalars& all) const {
  const int hosts = hosts_.count(), own = hosts_.host_of(communicator_.rank());
  std::vector<std::size_t> begins = {0};
  for (int i = 0; i < hosts; ++i) begins.push_back(begins.back() + doubles_of_host(call, (own + i) % hosts));
  std::vector<double> held(begins.back());
  pack(call, all, held.data());
  const auto blocks = [&](int first, int count) {
    const std::size_t begin = begins[first];
    return std::as_writable_bytes(std::span(held).subspan(begin, begins[first + count] - begin));
  };
  for (int have = 1; have < hosts; have *= 2) {
    const int more = std::min(have, hosts - have);
    const int from = hosts_.ranks((own + have) % hosts).front(),
              to = hosts_.ranks((own - have + hosts) % hosts).front();
    note_wait(call, from);
    const auto received = communicator_.receive(blocks(have, more), from, kScalarTag);
    const auto sent = communicator_.send(blocks(0, more), to, kScalarTag);
    received->wait(call.operation);
    sent->wait(call.operation);
  }
  for (int i = 1; i < hosts; ++i) unpack(call, (own + i) % hosts, held.data() + begins[i], all);
}

void ScalarGather::broadcast_to_host(const Call& call, const Scalars& all) const {
  const Region& mine = call.regions[0];
  double* values = std::copy(all.rank_values.begin(), all.rank_values.end(), mine.all_scalars(number_));
  std::copy(all.values.begin(), all.values.end(), values);
  Region::ScalarSlot& slot = mine.all_scalar_slot(number_);
  slot.flags = all.flags;
  slot.ready.store(number_, std::memory_order_release);
  for (const Region& peer : call.regions.subspan(1)) peer.doorbell().ring();
}

void ScalarGather::receive_from_first_rank(const Call& call, Scalars& all) const {
  const Region::ScalarSlot& slot = call.regions[0].all_scalar_slot(number_);
  wait_for(call, slot, hosts_.ranks(hosts_.host_of(communicator_.rank())).front());
  const double* values = call.regions[0].all_scalars(number_);
  std::copy_n(values, all.rank_values.size(), all.rank_values.begin());
  std::copy_n(values + all.rank_values.size(), all.values.size(), all.values.begin());
  all.flags = slot.flags;
}

}  // namespace lockstep::comm
