#include "tools/bench/reduce_scale.hpp"

#include <malloc.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "comm/reduce/all_reduce_cpu.hpp"
#include "comm/transport/thread_communicator.hpp"
#include "comm/transport/topology.hpp"
#include "core/spans.hpp"
#include "lockstep/error.hpp"

namespace lockstep::bench {

namespace {

// One host of an imaginary cluster: its ranks run as threads of this process, with their real code; ranks of all other
// hosts are simulated. Messages to those are counted and dropped, and messages from them arrive at once: zeros. So the
// all-reduce of 16,384 ranks can be studied on a laptop.

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

/// Runs `body` for each rank of `host`, each in its own thread, and rethrows the first error.
void run_sampled_host(const Topology& topology, int host, const std::function<void(SampledCommunicator&)>& body) {
  comm::ThreadWorld world(topology);
  const auto ranks = comm::Hosts(topology).ranks(host);
  comm::run_ranks(world, ranks, [&](int rank) {
    SampledCommunicator communicator(world, rank, ranks);
    body(communicator);
  });
}

constexpr int kPasses = 1000;
const Operation kMeasuring{"bench", 0, std::chrono::hours(1)};

/// Bytes that this process has allocated and not yet freed.
std::uint64_t heap_in_use() {
  const auto heap = mallinfo2();
  return heap.uordblks + heap.hblkhd;
}

class SampledRank {
 public:
  SampledRank(SampledCommunicator& communicator, const ScaleLoad& load)
      : communicator_(communicator),
        topology_(communicator.topology()),
        load_(load),
        buckets_(buckets_of(load.reduce, communicator.size())),
        reducer_(communicator, buckets_,
                 {.scalars_per_micro_batch = load.scalars_per_micro_batch, .scalars_per_rank = load.scalars_per_rank}),
        assignment_(comm::place_micro_batches(load.counts, {}, topology_.host_of)) {}

  void first_step(ReduceScale& found) {
    reducer_.begin_step(++step_, assignment_);
    compute();
    reducer_.finish();
    check_sums();
    const TrafficCounters gradients = communicator_.traffic();
    gather_scalars();
    found.messages = gradients.messages;
    found.scalar_messages = communicator_.traffic().messages - gradients.messages;
    found.network_bytes = communicator_.traffic().network_bytes;
    found.shared_memory_bytes = reducer_.statistics().shared_memory_bytes;
  }

  /// The first step with new micro-batches maps memory, so the second move is the one that is measured.
  void moved_steps(ReduceScale& found) {
    for (const auto* counts : {&load_.moved, &load_.counts}) {
      const double start = thread_seconds();
      assignment_ = comm::place_micro_batches(*counts, assignment_, topology_.host_of);
      reducer_.begin_step(++step_, assignment_);
      found.plan_seconds = thread_seconds() - start;
      finish_step();
    }
  }

  void unmoved_step(ReduceScale& found) {
    double start = thread_seconds();
    reducer_.begin_step(++step_, assignment_);
    found.begin_seconds = thread_seconds() - start;
    while (reducer_.advance_once()) {
    }
    start = thread_seconds();
    for (int i = 0; i < kPasses; ++i) (void)reducer_.advance_once();
    found.advance_seconds = (thread_seconds() - start) / kPasses;
    finish_step();
  }

 private:
  const std::vector<int>& own_micro_batches() const { return assignment_.micro_batches_of_rank[communicator_.rank()]; }
  int bucket_count() const { return buckets_.count(); }

  // Every gradient element is 1.
  void compute() {
    for (const int micro_batch : own_micro_batches()) {
      for (int b = 0; b < bucket_count(); ++b) {
        const comm::GradientBuffer buffer = reducer_.buffer(micro_batch, b);
        const std::int64_t elements = buckets_.at(b).elements;
        write_ones(buffer, elements);
        reducer_.ready(micro_batch, b);
      }
    }
  }

  void gather_scalars() {
    const std::vector<double> values(own_micro_batches().size() * load_.scalars_per_micro_batch, 1.0);
    const std::vector<double> rank_values(load_.scalars_per_rank, 1.0);
    (void)reducer_.scalars({values, load_.scalars_per_micro_batch, rank_values});
  }

  void finish_step() {
    compute();
    reducer_.finish();
    gather_scalars();
  }

  // A slice whose owner is on this host is the number of this host's micro-batches, since gradients from other hosts
  // are zeros. Slices of other owners are zeros.
  void check_sums() const {
    float micro_batches = 0;
    for (const int rank : communicator_.beside()) micro_batches += load_.counts[rank];
    for (int b = 0; b < bucket_count(); ++b) {
      const auto sums = reducer_.reduced(b);
      for (const comm::Slice& slice : comm::slices_of(buckets_, b, communicator_.size())) {
        const float wanted = topology_.same_host(slice.owner, communicator_.rank()) ? micro_batches : 0.0F;
        const auto part = sums.subspan(slice.first, slice.size);
        expect_sum(part, wanted);
      }
    }
  }

  SampledCommunicator& communicator_;
  Topology topology_;  ///< its own copy, as every process has one: it counts as the rank's memory
  const ScaleLoad& load_;
  comm::GradientBuckets buckets_;
  comm::CpuAllReduce reducer_;
  comm::MicroBatchAssignment assignment_;
  std::uint64_t step_ = 0;
};

/// The larger one of each figure.
ReduceScale max_of(const ReduceScale& a, const ReduceScale& b) {
  return {.messages = std::max(a.messages, b.messages),
          .scalar_messages = std::max(a.scalar_messages, b.scalar_messages),
          .network_bytes = std::max(a.network_bytes, b.network_bytes),
          .shared_memory_bytes = std::max(a.shared_memory_bytes, b.shared_memory_bytes),
          .plan_seconds = std::max(a.plan_seconds, b.plan_seconds),
          .begin_seconds = std::max(a.begin_seconds, b.begin_seconds),
          .advance_seconds = std::max(a.advance_seconds, b.advance_seconds),
          .heap_bytes = std::max(a.heap_bytes, b.heap_bytes)};
}

int busiest_host(const ScaleLoad& load) {
  const int ranks = load.topology.host_of.size();
  const comm::GradientBuckets buckets = buckets_of(load.reduce, ranks);
  std::vector<std::int64_t> owned(load.topology.host_of.size());
  for (int b = 0; b < buckets.count(); ++b) {
    for (const comm::Slice& slice : comm::slices_of(buckets, b, ranks)) owned[slice.owner] += slice.size;
  }
  const auto most = std::max_element(owned.begin(), owned.end());
  return load.topology.host_of[most - owned.begin()];
}

}  // namespace

ReduceScale measure_reduce_scale(const ScaleLoad& load) {
  const int host = busiest_host(load);
  ReduceScale most;
  std::mutex mutex;
  run_sampled_host(load.topology, host, [&](SampledCommunicator& communicator) {
    ReduceScale found;
    communicator.barrier(kMeasuring);
    const std::uint64_t before = heap_in_use();
    communicator.barrier(kMeasuring);
    SampledRank rank(communicator, load);
    rank.first_step(found);
    communicator.barrier(kMeasuring);
    found.heap_bytes = (heap_in_use() - before) / communicator.beside().size();
    communicator.barrier(kMeasuring);
    rank.moved_steps(found);
    rank.unmoved_step(found);
    communicator.barrier(kMeasuring);
    const std::lock_guard lock(mutex);
    most = max_of(most, found);
  });
  return most;
}

}  // namespace lockstep::bench
