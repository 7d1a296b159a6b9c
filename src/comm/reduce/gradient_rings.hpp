// GradientRings: ring buffers in a host's shared memory, one per worker, through which all ranks of the host read its
// gradients, bucket by bucket. A worker writes a bucket of its micro-batch in place and publishes it; every rank of the
// host reads each bucket once, in the order of publication; when all have read it, its memory is reused. A worker that
// gets too far ahead of its readers waits.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
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
  /// Collective. `count`: number of workers, the same on every rank of the host. `open`: the most elements in buckets
  /// that a micro-batch has between open() and publish(). Communicator and buckets must outlive it.
  GradientRings(Communicator& communicator, const GradientBuckets& buckets, int count, std::int64_t open,
                std::chrono::milliseconds timeout);

  /// Size of a ring, in floats.
  [[nodiscard]] static std::int64_t elements(const GradientBuckets& buckets, std::int64_t open);

  /// Memory for a bucket of a micro-batch, 64-byte aligned. For each micro-batch, buckets must come in ascending order,
  /// as must calls of publish(). Any thread may call it, for no more micro-batches at a time than there are rings.
  /// Waits for room, calling `check` meanwhile, which may throw.
  [[nodiscard]] float* open(int micro_batch, int bucket, const Operation& operation,
                            const std::function<void()>& check);
  /// The bucket has been written. `epoch`: the number of its step.
  void publish(int micro_batch, int bucket, std::uint64_t epoch);

  /// A bucket that a rank of this host has published.
  struct Published {
    int local_rank = 0;  ///< the rank that published it
    int micro_batch = 0;
    int bucket = 0;
    const float* gradient = nullptr;
  };
  /// Calls `read` for each bucket of this step that has been published since the last call. A peer may already have
  /// begun the next step; its buckets are left for later. To be called by one thread. Returns whether there was any.
  bool read_new(std::uint64_t epoch, const std::function<void(const Published&)>& read);

  /// Rung when a bucket has been published on this host, or one of this rank's has been read.
  [[nodiscard]] Doorbell& doorbell() const { return doorbell(local_rank_); }
  /// Micro-batches of which this rank has published all buckets.
  [[nodiscard]] std::uint64_t micro_batches_published() const;

 private:
  /// A bucket of a micro-batch in a ring.
  struct Entry {
    std::uint64_t epoch = 0;
    std::int32_t micro_batch = 0;
    std::int64_t offset = 0;  ///< in the ring, in floats
  };
  static constexpr std::uint64_t kEntries = 512;  // the most that a ring has at a time
  /// The part that all ranks of the host see. Entries are numbered from the start of the run; bucket = number %
  /// buckets.
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
    std::uint64_t opened = 0, published = 0, freed = 0;
    struct Segment {
      std::int64_t offset, elements;
    };
    std::deque<Segment> segments;  ///< of entries [freed, opened)
  };

  void map();
  [[nodiscard]] Doorbell& doorbell(int local_rank) const;
  [[nodiscard]] Shared& ring(int local_rank, int number) const;
  [[nodiscard]] std::atomic<std::uint64_t>& read_by(int reader, int local_rank, int number) const;
  [[nodiscard]] float* memory(int local_rank, int number) const;
  [[nodiscard]] std::uint64_t bucket_count() const { return static_cast<std::uint64_t>(buckets_.count()); }
  [[nodiscard]] int ring_of(int micro_batch);
  void free_read(int number);
  [[nodiscard]] std::optional<std::int64_t> room_for(const Filled& ring, std::int64_t elements) const;
  [[noreturn]] void throw_unread(int number, const Operation& operation, double seconds) const;

  Communicator& communicator_;
  const GradientBuckets& buckets_;
  std::chrono::milliseconds timeout_;
  std::vector<int> local_ranks_;  ///< of this host
  int local_rank_;
  std::int64_t ring_elements_;
  std::unique_ptr<HostMemory> memory_;
  std::vector<std::vector<std::uint64_t>> cursors_;  ///< by local rank and ring: entries that this rank has read
  std::mutex mutex_;                                 ///< guards filled_
  std::vector<Filled> filled_;
};

}  // namespace lockstep::comm
