// Sums in the association of the tree (comm/reduce/tree.hpp): inside one rank, micro-batch by micro-batch as they are
// computed (AccumulationBuffers), and over the partial sums of several ranks, when all have arrived (Combiner).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "comm/reduce/gradient_reducer.hpp"
#include "comm/reduce/tree.hpp"
#include "lockstep/tensor.hpp"

namespace lockstep::comm {

/// The memory of sums and the additions in it: on the host, or on a GPU.
class BufferMemory {
 public:
  BufferMemory() = default;
  BufferMemory(const BufferMemory&) = delete;
  BufferMemory& operator=(const BufferMemory&) = delete;
  virtual ~BufferMemory() = default;
  /// 64-byte aligned, not cleared; freed with this object. Thread-safe.
  [[nodiscard]] virtual float* allocate(std::int64_t elements) = 0;
  /// left += right; afterwards, `right` may be reused. Several threads may call it for different memory.
  virtual void add(float* left, float* right, std::int64_t elements) = 0;
  /// Whether a finished sum may be added to directly by the worker that computes its sibling.
  virtual bool takes_more() const = 0;
};

/// Host memory; the calling thread does the additions.
[[nodiscard]] std::unique_ptr<BufferMemory> host_buffer_memory();

/// Micro-batches in their order, so many at a time.
[[nodiscard]] std::vector<std::vector<int>> waves_of(std::span<const int> micro_batches, int workers);

/// The gradients of a rank's micro-batches, bucket by bucket, merged as soon as two siblings exist.
///
/// A merge is left += right in the left operand's memory, so a sum is stored in the memory of its first micro-batch; a
/// right leaf whose sibling is already complete gets no memory of its own, but is added to the sibling's while it is
/// computed. For a root (what the rank publishes), the caller provides that memory; for all others it comes from a pool
/// and returns there once it has been added. With micro-batches computed in order, about log2(n) + workers buffers of a
/// bucket are alive at a time. After the first step nothing is allocated.
class AccumulationBuffers {
 public:
  /// `memory` must outlive it.
  AccumulationBuffers(const GradientBuckets& buckets, BufferMemory& memory);
  /// Sets what is added from the next step on.
  void use(MergePlan plan) { plan_ = std::move(plan); }
  /// Starts a step. `root_memory(root, bucket)` is called from buffer().
  void begin(std::function<float*(int root, int bucket)> root_memory);
  [[nodiscard]] GradientBuffer buffer(int micro_batch, int bucket);
  /// The memory that buffer() returned for them in this step.
  [[nodiscard]] float* memory_of(int micro_batch, int bucket);
  /// Returns the root that this gradient has completed, if any.
  [[nodiscard]] std::optional<int> ready(int micro_batch, int bucket);
  /// The most elements that pool buffers have held at once.
  std::int64_t peak_pool_elements() const { return peak_; }
  /// The most pool buffers of a bucket that a step takes if micro-batches come in these waves: the buffers of a wave
  /// are open at the same time.
  [[nodiscard]] static int most_waiting(MergePlan plan, std::span<const std::vector<int>> waves);
  /// Takes as many pool buffers of a bucket at once, on the host: so memory does not depend on how the workers happen
  /// to meet. More are taken if they are needed. Between steps.
  void reserve(int bucket, int buffers);

 private:
  struct BucketSums {
    std::mutex mutex;
    std::int64_t elements = 0;
    std::vector<float*> memory;  ///< by node; leaves: set by buffer(), others: when they are summed
    std::vector<char> done;      ///< by node: its sum is complete
    std::vector<float*> free;
  };
  float* take(BucketSums& bucket);
  void give_back(BucketSums& bucket, float* memory);

  BufferMemory& memory_;
  MergePlan plan_;
  std::function<float*(int, int)> root_memory_;
  std::vector<std::unique_ptr<BucketSums>> buckets_;
  std::atomic<std::int64_t> alive_{0}, peak_{0};
};

/// Sums many partial sums in tree order, block by block, so that intermediate results stay in the cache: the work of a
/// slice's owner, and of its leaders on other hosts (comm/reduce/reduce_plan.hpp).
class Combiner {
 public:
  Combiner() = default;
  /// `additions`: combine_order() for this many sources.
  Combiner(std::span<const Addition> additions, std::size_t sources);
  /// out[i] = the sum of sources[s][i]; the sources are in the order of combine_order()'s partials.
  void run(float* out, std::span<const float* const> sources, std::int64_t n);

 private:
  // An operand or result: a partial sum, a scratch block, or the output.
  struct Operand {
    enum class Kind { partial, scratch, output } kind = Kind::partial;
    int index = 0;
  };
  struct Step {
    Operand out, left, right;
  };
  std::vector<Step> steps_;
  AlignedBytes scratch_;
};

}  // namespace lockstep::comm
