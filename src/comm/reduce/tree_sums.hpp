// Sums in the association of the tree (comm/reduce/tree.hpp): inside one rank, shard by shard as they are computed
// (AccumulationBuffers), and of the partial sums of several ranks, when all are there (Combiner).
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

/// Where sums stand, and who adds them: the host, or a GPU.
class BufferMemory {
 public:
  BufferMemory() = default;
  BufferMemory(const BufferMemory&) = delete;
  BufferMemory& operator=(const BufferMemory&) = delete;
  virtual ~BufferMemory() = default;
  /// 64-byte aligned, not cleared; it lives as long as this does. By any thread.
  [[nodiscard]] virtual float* allocate(std::int64_t elements) = 0;
  /// left += right; `right` may be given away afterwards. By several threads, for other memory.
  virtual void add(float* left, float* right, std::int64_t elements) = 0;
  /// Whether a sum that is done may be added to by whoever computes its sibling.
  [[nodiscard]] virtual bool takes_more() const = 0;
};

/// The memory of this process, added to by the thread that asks for it.
[[nodiscard]] std::unique_ptr<BufferMemory> host_buffer_memory();

/// The gradients of a rank's shards, bucket by bucket, merged as soon as two siblings exist.
///
/// A merge is left += right in the left one's memory, so a sum stands in the memory of its first shard; a right leaf
/// whose sibling is there already is not even given memory, but added to the sibling's while it is computed. For a root
/// (what the rank publishes) that memory is given from outside, for all others it comes from a pool and goes back when
/// it has been added. With shards computed in order, about log2(n) + workers buffers of a bucket are alive at a time.
/// After the first step nothing is allocated.
class AccumulationBuffers {
 public:
  /// `memory` outlives it.
  AccumulationBuffers(const GradientBuckets& buckets, BufferMemory& memory);
  /// What is added from the next step on.
  void use(MergePlan plan) { plan_ = std::move(plan); }
  /// Starts a step. `root_memory(root, bucket)` is called from buffer().
  void begin(std::function<float*(int root, int bucket)> root_memory);
  [[nodiscard]] GradientBuffer buffer(int shard, int bucket);
  /// What buffer() gave for them in this step.
  [[nodiscard]] float* memory_of(int shard, int bucket);
  /// The root that this gradient finished, if any: all its shards are in.
  [[nodiscard]] std::optional<int> ready(int shard, int bucket);
  /// The largest number of elements that pool buffers held at once.
  [[nodiscard]] std::int64_t peak_pool_elements() const { return peak_; }

 private:
  struct BucketSums {
    std::mutex mutex;
    std::int64_t elements = 0;
    std::vector<float*> memory;  ///< by node; of leaves from buffer() on, of others once summed
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

/// The sum of many partial sums in tree order, block by block, so that what stands between two additions stays in the
/// cache: the work of a slice's owner, and of its leaders on other hosts (comm/reduce/reduce_plan.hpp).
class Combiner {
 public:
  Combiner() = default;
  /// `additions`: combine_order() of this many sources.
  Combiner(std::span<const Addition> additions, std::size_t sources);
  /// out[i] = the sum of sources[s][i], with the sources in the order of combine_order()'s partial sums.
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
