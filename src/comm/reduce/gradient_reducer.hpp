// GradientReducer: adds the gradients of V micro-batches, wherever they were computed, into one sum that every rank
// gets, with the same bits for any micro-batch assignment (comm/reduce/tree.hpp), and exchanges the step's scalars.
//
// A step: begin_step -> workers fill buffer() and call ready() in any order -> finish() -> reduced(). A partial sum is
// sent as soon as its subtree is done, while other micro-batches and buckets are still computed. The owner of a slice
// of a bucket adds all partial sums of it in tree order; then every rank gets every slice.
//
// The caller may write buffer()'s memory until ready(). reduced() is valid until this rank's next begin_step and must
// not be written. All ranks call begin_step, scalars and finish in the same order.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "comm/reduce/gradient_buckets.hpp"
#include "comm/reduce/micro_batch_assignment.hpp"
#include "device/stream.hpp"
#include "lockstep/communicator.hpp"

namespace lockstep {
class TraceRecorder;
}

namespace lockstep::comm {

class Hosts;

struct ReducerOptions {
  bool exact = true;  ///< false: local sums in local order, then the library's all-reduce
  std::chrono::milliseconds timeout{60'000};
  WaitWatch* watch = nullptr;        ///< of a model in parts: ranks may still be waiting for other parts
  int scalars_per_micro_batch = 64;  ///< maximum that scalars() may be given
  int scalars_per_rank = 16;
  bool streamed = false;           ///< scattered buckets are added micro-batch by micro-batch (StreamedSums)
  int workers = 1;                 ///< the most micro-batches whose buckets are filled at the same time
  std::int64_t open_elements = 0;  ///< streamed: the most elements of buckets that a micro-batch has between buffer()
                                   ///< and ready()
  std::int64_t ahead_elements = std::int64_t{1} << 21;  ///< streamed on a GPU: of buckets that wait for their exchange
  const std::atomic<bool>* stop = nullptr;  ///< becomes true if a worker of this rank has failed: waits for room end
};

/// What the memory of a rank's reducer depends on.
struct ReducerShare {
  const GradientBuckets& buckets;
  const MicroBatchAssignment& assignment;
  const Hosts& hosts;
  int rank = 0;
  const ReducerOptions& options;
};

struct ReducerStatistics {
  std::uint64_t shared_memory_bytes = 0;  ///< partial and reduced slices that peers on this host have read
  std::uint64_t network_bytes = 0;        ///< partial and reduced slices sent as messages to other hosts
  std::uint64_t partials_sent = 0;        ///< partial sums of a bucket published
  double seconds_waited = 0;              ///< idle in finish() and scalars()
  double seconds_reducing = 0;            ///< adding slices as their owner
  std::int64_t peak_elements = 0;         ///< the most gradient elements held at once, including partial sums
};

/// What a rank contributes to a step besides its gradients.
struct OwnScalars {
  std::span<const double> of_micro_batches =
      {};                   ///< `per_micro_batch` for each micro-batch of this rank, in the order of the assignment
  int per_micro_batch = 0;  ///< the same on all ranks
  std::span<const double> of_rank = {};  ///< the same number from each rank
  std::uint32_t flags = 0;
};

/// Every micro-batch's scalars, micro-batch by micro-batch; every rank's own, rank by rank; and the OR of all ranks'
/// flags.
struct Scalars {
  std::vector<double> values, rank_values;
  std::uint32_t flags = 0;
};

/// Memory for a micro-batch's gradient of a bucket: bucket_elements floats, 64-byte aligned, not cleared.
struct GradientBuffer {
  float* memory = nullptr;
  bool add = false;  ///< it holds the sibling's sum: add to it, which saves a pass over the memory
  /// On a GPU (GpuAllReduce), where `memory` is device memory: the stream that writes it waits for `free` first, and
  /// records `written` afterwards, before ready() is called.
  device::Event free{}, written{};
};

/// Receives the gradients of micro-batches. Any thread may call it, in any order.
class GradientSink {
 public:
  virtual ~GradientSink() = default;
  /// Called once per micro-batch and bucket in a step.
  [[nodiscard]] virtual GradientBuffer buffer(int micro_batch, int bucket) = 0;
  /// The gradient has been written to its buffer. The call may take a while: it adds siblings.
  virtual void ready(int micro_batch, int bucket) = 0;
};

class GradientReducer : public GradientSink {
 public:
  /// Called by the main thread, before the workers start.
  virtual void begin_step(std::uint64_t step, const MicroBatchAssignment& assignment) = 0;
  /// Waits for every slice of every bucket. Called by the main thread, after its workers have called ready().
  virtual void finish() = 0;
  /// The same; afterwards gathers the result of own(), which may include the time of that wait.
  [[nodiscard]] Scalars finish(const std::function<OwnScalars()>& own) {
    finish();
    return scalars(own());
  }
  /// The sum over all micro-batches, after finish(); for a scattered bucket, only in this rank's own slice. On a GPU it
  /// is valid after GpuAllReduce::whole(), and of a scattered bucket it is that slice alone.
  virtual std::span<const float> reduced(int bucket) const = 0;
  /// Copies it to host memory, waiting until it is complete.
  virtual std::vector<float> fetch(int bucket) const { return {reduced(bucket).begin(), reduced(bucket).end()}; }
  /// Called by the main thread between begin_step and the next one, any number of times.
  [[nodiscard]] virtual Scalars scalars(const OwnScalars& own) = 0;
  virtual ReducerStatistics statistics() const = 0;
  /// Where the spans of buckets are recorded from the next begin_step on; null: nowhere. By the main thread, after
  /// finish().
  virtual void trace(TraceRecorder* recorder) = 0;
};

/// The communicator must outlive the reducer.
[[nodiscard]] std::unique_ptr<GradientReducer> make_reducer(Communicator& communicator, GradientBuckets buckets,
                                                            ReducerOptions options = {});

}  // namespace lockstep::comm
