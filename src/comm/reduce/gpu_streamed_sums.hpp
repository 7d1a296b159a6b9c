// GpuStreamedSums: sums of scattered buckets on GPUs, wave by wave; no GPU ever holds a whole gradient. In a wave
// (comm/reduce/micro_batch_assignment.hpp) every worker writes the gradient of a micro-batch, bucket by bucket, into a
// ring (GpuRings). As soon as a bucket of all the rank's micro-batches of the wave is written, its slices are sent to
// their leaders on the host, who add them to their sums (WaveSums). After the last wave the leaders send the host's
// sums to the owners on other hosts. These exchanges are the same, in the same order, on all ranks: wave by wave, in a
// wave bucket by bucket. A rank without a micro-batch in a wave takes part without sending.
//
// A micro-batch whose bucket finds its place in the ring taken waits for the exchange that reads it. So memory does not
// grow with the differences between ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "comm/reduce/gpu_rings.hpp"
#include "comm/reduce/gradient_reducer.hpp"
#include "comm/reduce/reduce_plan.hpp"
#include "comm/reduce/wave_sums.hpp"
#include "comm/transport/gpu_transport.hpp"
#include "comm/transport/topology.hpp"
#include "device/gpu/gpu.hpp"
#include "device/gpu/gpu_memory.hpp"

namespace lockstep::comm {

class GpuStreamedSums {
 public:
  using Event = device::Gpu::Event;
  using Stream = device::Gpu::Stream;

  /// A bucket's exchange in a wave.
  struct Exchange {
    int wave = 0, bucket = 0;
  };

  /// What a rank adds, and for which slices: a value.
  struct Plan {
    Plan(const GradientBuckets& all, const MicroBatchAssignment& assignment, const Hosts& hosts, int rank);

    WaveSums sums;       ///< of the rank's host
    SumPlan of_owner;    ///< the host's sums and those of other hosts
    bool alone = false;  ///< there is one host: its sum is the whole one
    struct Slice {
      int owner = 0;
      std::int64_t first = 0, size = 0;
      std::int64_t kept_at = 0;  ///< in the memory of a kept sum; -1: it has no other than the result's
    };
    struct Bucket {
      std::vector<Slice> handled;       ///< that the rank owns or leads, in order
      std::vector<PlannedSlice> given;  ///< that other ranks of the host handle, in order
    };
    std::vector<Bucket> buckets;     ///< empty: not streamed
    std::int64_t kept_elements = 0;  ///< of a kept sum
    /// Kept sums that have memory.
    int kept() const { return alone ? std::max(0, sums.kept - 1) : sums.kept; }
    /// Elements that arrive at once, at most.
    std::int64_t receive_elements(int rank) const;
  };

  /// `stream`: of the transport, where all messages and additions are enqueued. References must outlive it.
  GpuStreamedSums(device::Gpu& gpu, Stream stream, const GradientBuckets& buckets, const Hosts& hosts, int rank,
                  const ReducerOptions& options);

  /// Elements of the rings of the rank's workers.
  [[nodiscard]] static std::int64_t ring_elements(const GradientBuckets& buckets, const ReducerOptions& options) {
    return options.workers * ring_layout(buckets, options.open_elements, options.ahead_elements).elements;
  }

  /// For the steps from now on. The first call allocates the rings, and memory only grows.
  void use(const MicroBatchAssignment& assignment);
  const Plan& plan() const { return *plan_; }
  int waves() const { return plan_->sums.waves.size(); }
  /// The rank's micro-batches in a wave.
  int own_leaves(int wave) const { return own_leaves_[wave]; }
  int wave_of(int micro_batch) const { return leaf_of(micro_batch).wave; }
  /// Elements of rings and kept sums.
  std::int64_t elements() const;

  // By workers.

  /// The exchange that must have been enqueued before buffer() is called, and that ends before the buffer is written;
  /// none: nothing in this step has been where the bucket is written.
  std::optional<Exchange> before(int micro_batch, int bucket) const;
  /// The end of the last exchange of a bucket.
  Event exchanged(int bucket) const { return exchanged_[number_of(bucket)]; }
  GradientBuffer buffer(int micro_batch, int bucket) const;

  /// Enqueues an exchange of which this rank's buffers are written, by events. `received`: receive memory; `result`: of
  /// the own slice, which has its sum after the last wave.
  void enqueue(Exchange exchange, GpuTransport& transport, float* received, float* result);

 private:
  struct OwnLeaf {
    int wave = 0, ring = 0;
    int earlier_wave = -1;  ///< in which the ring was used before; -1: in none of this step
  };
  const OwnLeaf& leaf_of(int micro_batch) const;
  int number_of(int bucket) const { return numbers_[bucket]; }
  /// Of the leaves of a wave, slice by slice.
  struct Arrived;
  [[nodiscard]] Arrived exchange_leaves(Exchange exchange, GpuTransport& transport, float* received);
  void finish(int bucket, GpuTransport& transport, float* received, float* result);
  float* kept(int number, const Plan::Slice& slice, float* result) const;

  device::Gpu& gpu_;
  Stream stream_;
  const GradientBuckets& buckets_;
  const Hosts& hosts_;
  const int rank_;
  std::vector<int> numbers_;  ///< by bucket, among the streamed ones; -1: not streamed
  const RingLayout layout_;
  const int workers_;
  std::unique_ptr<const GpuRings> rings_;  ///< null before the first step
  std::vector<Event> exchanged_;           ///< by streamed bucket
  std::unique_ptr<const Plan> plan_;
  std::vector<OwnLeaf> leaves_;         ///< by micro-batch
  std::vector<int> own_leaves_;         ///< by wave
  std::vector<device::GpuBlock> kept_;  ///< by kept sum that has memory
};

}  // namespace lockstep::comm
