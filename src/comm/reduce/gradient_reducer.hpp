// GradientReducer: turns the gradients of V shards, computed anywhere, into their one sum on every rank, with the
// same bits for any placement (comm/reduce/tree.hpp), and moves the step's scalars.
//
// A step: begin_step -> workers fill buffer() and call ready() in any order -> finish() -> reduced(). A partial
// sum leaves as soon as its subtree is done, while other shards and buckets are still computed. The owner of a
// slice of a bucket adds all partial sums of it in tree order; then every rank gets every slice.
//
// Memory of buffer() is the caller's from buffer() to ready(). What reduced() shows stands until this rank's next
// begin_step and must not be written. All ranks call begin_step, scalars and finish in the same order.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "comm/reduce/gradient_buckets.hpp"
#include "comm/reduce/shard_assignment.hpp"
#include "device/stream.hpp"
#include "lockstep/communicator.hpp"

namespace lockstep {
class TraceRecorder;
}

namespace lockstep::comm {

struct ReducerOptions {
  bool exact = true;  ///< false: local sums in local order, then the library's all-reduce
  std::chrono::milliseconds timeout{60'000};
  int scalars_per_shard = 64;  ///< that scalars() may be given at most
  int scalars_per_rank = 16;
  bool streamed = false;           ///< buckets that are scattered are added shard by shard (StreamedReduceScatter)
  int workers = 1;                 ///< streamed: shards whose buckets come at the same time, at most
  std::int64_t open_elements = 0;  ///< streamed: of buckets of a shard between buffer() and ready(), at most
};

struct ReducerStatistics {
  std::uint64_t shared_memory_bytes = 0;  ///< partial and reduced slices read by peers of this host
  std::uint64_t network_bytes = 0;        ///< the same, sent as messages to other hosts
  std::uint64_t partials_sent = 0;        ///< partial sums of a bucket published
  double seconds_waited = 0;              ///< in finish() and scalars(), with nothing to do
  double seconds_reducing = 0;            ///< adding slices as their owner
  std::int64_t peak_elements = 0;         ///< most gradient elements held at once, partial sums included
};

/// What a rank gives of a step beside its gradients.
struct OwnScalars {
  std::span<const double> of_shards = {};  ///< `per_shard` for each shard of this rank, in the order of the assignment
  int per_shard = 0;                       ///< the same on all ranks
  std::span<const double> of_rank = {};    ///< as many from each rank
  std::uint32_t flags = 0;
};

/// Every shard's scalars, shard by shard; every rank's own, rank by rank; and the OR of all ranks' flags.
struct Scalars {
  std::vector<double> values, rank_values;
  std::uint32_t flags = 0;
};

/// Where a shard's gradient of a bucket goes: bucket_elements floats, 64-byte aligned, not cleared.
struct GradientBuffer {
  float* memory = nullptr;
  bool add = false;  ///< the sum of its sibling stands there, to be added to: saves a pass over the memory
  /// On a GPU (GpuAllReduce), where `memory` is. The stream that writes it waits for `free` before, and records
  /// `written` after, before ready() is called.
  device::Event free{}, written{};
};

/// Who takes the gradients of shards. By any thread, in any order.
class GradientSink {
 public:
  virtual ~GradientSink() = default;
  /// Once for a shard and bucket in a step.
  [[nodiscard]] virtual GradientBuffer buffer(int shard, int bucket) = 0;
  /// The gradient is in its buffer. It may take a while: siblings are added.
  virtual void ready(int shard, int bucket) = 0;
};

class GradientReducer : public GradientSink {
 public:
  /// By the main thread, before the workers start.
  virtual void begin_step(std::uint64_t step, const ShardAssignment& assignment) = 0;
  /// Waits for every slice of every bucket. By the main thread, after its workers have called ready().
  virtual void finish() = 0;
  /// The same, and then gathers what own() gives, which may tell of the wait.
  [[nodiscard]] Scalars finish(const std::function<OwnScalars()>& own) {
    finish();
    return scalars(own());
  }
  /// The sum over all shards, after finish(); of a bucket that is scattered, in this rank's own slice alone. On a GPU
  /// it is there when GpuAllReduce::whole() is.
  [[nodiscard]] virtual std::span<const float> reduced(int bucket) const = 0;
  /// A copy of it in the host's memory, which waits until it is there.
  [[nodiscard]] virtual std::vector<float> fetch(int bucket) const {
    return {reduced(bucket).begin(), reduced(bucket).end()};
  }
  /// By the main thread, between begin_step and the next one; as often as wanted.
  [[nodiscard]] virtual Scalars scalars(const OwnScalars& own) = 0;
  [[nodiscard]] virtual ReducerStatistics statistics() const = 0;
  /// Where the spans of buckets go from the next begin_step on; null: nowhere. By the main thread, after finish().
  virtual void trace(TraceRecorder* recorder) = 0;
};

/// The communicator must outlive the reducer.
[[nodiscard]] std::unique_ptr<GradientReducer> make_reducer(Communicator& communicator, GradientBuckets buckets,
                                                            ReducerOptions options = {});

}  // namespace lockstep::comm
