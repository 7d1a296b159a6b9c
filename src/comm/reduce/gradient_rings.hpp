// GradientRings: ring buffers in a host's shared memory, one per worker, through which all ranks of the host read its
// gradients of scattered buckets, one after the other. A worker writes a bucket of its micro-batch in place and
// publishes it; every rank of the host reads each bucket once, in the order of publication; when all have read it, its
// memory is reused. A worker that gets too far ahead of its readers waits. Ranks may have different numbers of workers.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <vector>

#include "comm/reduce/gradient_buckets.hpp"
#include "comm/transport/doorbell.hpp"
#include "comm/transport/host_memory.hpp"
#include "comm/transport/topology.hpp"
#include "lockstep/communicator.hpp"

namespace lockstep::comm {

class GradientRings {
 public:
  /// Collective. `doorbells`: by local rank; each is rung when a bucket has been published on this host, or one of that
  /// rank's has been read. `count`: number of this rank's workers. `open`: the most elements in buckets that a
  /// micro-batch has between open() and publish(). Communicator, buckets and doorbells must outlive it.
  GradientRings(Communicator& communicator, const GradientBuckets& buckets, std::vector<Doorbell*> doorbells, int count,
                std::int64_t open, std::chrono::milliseconds timeout);

  /// Size of a ring, in floats.
  [[nodiscard]] static std::int64_t elements(const GradientBuckets& buckets, std::int64_t open);

  /// The scattered buckets, ascending.
  const std::vector<int>& buckets() const { return streamed_; }

  /// Begins a step, in which open() has the place of each micro-batch in the order in which they are read.
  void begin_step();
  /// Memory for a bucket of a micro-batch, 64-byte aligned. For each micro-batch, all scattered buckets must come in
  /// ascending order, as must calls of publish(). Any thread may call it, for no more micro-batches at a time than
  /// there are rings; the places of each thread ascend, and so do those in each ring. Waits for room, calling `waits`
  /// meanwhile, which throws when the wait has been too long.
  [[nodiscard]] float* open(int micro_batch, int place, int bucket, const std::function<void()>& waits);
  /// The bucket has been written. `epoch`: the number of its step.
  void publish(int micro_batch, int bucket, std::uint64_t epoch);

  /// A bucket that a rank of this host has published.
  struct Published {
    int local_rank = 0;  ///< the rank that published it
    int micro_batch = 0;
    int bucket = 0;
    const float* gradient = nullptr;
  };
  /// Calls `read` for the buckets of this step that have been published and not been read. If it returns false, that
  /// bucket, and those behind it in its ring, are left for the next call. A peer may already have begun the next step;
  /// its buckets are left, too. To be called by one thread. Returns whether any was read.
  bool read_new(std::uint64_t epoch, const std::function<bool(const Published&)>& read);
  /// The rank that has read least of what this worker has published.
  [[nodiscard]] int slowest_reader(int micro_batch);
  /// Workers of all ranks of the host.
  int host_workers() const { return std::accumulate(counts_.begin(), counts_.end(), 0); }

 private:
  /// A bucket of a micro-batch in a ring.
  struct Entry {
    std::uint64_t epoch = 0;
    std::int32_t micro_batch = 0;
    std::int64_t offset = 0;  ///< in the ring, in floats
  };
  static constexpr std::uint64_t kEntries = 512;  // the most that a ring has at a time
  /// The part that all ranks of the host see. Entries are numbered from the start of the run; each micro-batch has one
  /// for each of streamed_.
  struct Shared {
    alignas(64) std::atomic<std::uint64_t> published{0};
    std::array<Entry, kEntries> entries;
  };
  struct alignas(64) Count {
    std::atomic<std::uint64_t> value{0};
  };
  /// The state of a ring that only its own rank needs.
  struct Filled {
    int micro_batch = -1;  ///< the micro-batch that uses it; -1: free
    int last_place = -1;   ///< of its micro-batches in this step
    std::uint64_t opened = 0, published = 0, freed = 0;
    struct Segment {
      std::int64_t offset, elements;
    };
    std::deque<Segment> segments;  ///< of entries [freed, opened)
  };

  void map();
  Doorbell& doorbell(int local_rank) const { return *doorbells_[local_rank]; }
  Shared& ring(int local_rank, int number) const;
  std::atomic<std::uint64_t>& read_by(int reader, int local_rank, int number) const;
  float* memory(int local_rank, int number) const;
  std::size_t count(int local_rank) const { return counts_[local_rank]; }
  int bucket_of(std::uint64_t entry) const { return streamed_[entry % streamed_.size()]; }
  [[nodiscard]] int ring_of(int micro_batch);
  void take_ring(int micro_batch, int place);
  void free_read(int number);
  std::optional<std::int64_t> room_for(const Filled& ring, std::int64_t elements) const;

  Communicator& communicator_;
  const GradientBuckets& buckets_;
  std::vector<int> streamed_;  ///< the scattered buckets
  std::vector<Doorbell*> doorbells_;
  std::chrono::milliseconds timeout_;
  std::vector<int> local_ranks_;  ///< of this host
  int local_rank_;
  std::vector<int> counts_;  ///< rings of each rank of this host
  std::int64_t ring_elements_;
  std::unique_ptr<HostMemory> memory_;
  std::vector<std::vector<std::uint64_t>> cursors_;  ///< by local rank and ring: entries that this rank has read
  std::mutex mutex_;                                 ///< guards filled_
  std::vector<Filled> filled_;
};

}  // namespace lockstep::comm
