// The sums inside one rank: gradients of its shards, bucket by bucket, merged as soon as two siblings exist.
//
// A merge is left += right in the left one's memory, so a sum stands in the memory of its first shard; a right leaf
// whose sibling is there already is not even given memory, but added to the sibling's while it is computed. For a
// root (what the rank publishes) that memory is given from outside, for all others it comes from a pool and
// goes back when it has been added. With shards computed in order, about log2(n) + workers buffers of a bucket
// are alive at a time. After the first step nothing is allocated.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "comm/reduce/gradient_reducer.hpp"
#include "comm/reduce/tree.hpp"

namespace lockstep::comm {

/// Which sums to build from which shards.
struct MergePlan {
  struct Node {
    int parent = -1;  ///< -1: a root
    int sibling = -1;
    bool is_left = false;
    int root = -1;  ///< of a root: its number
  };
  std::vector<Node> nodes;
  std::vector<int> leaf_of_shard;   ///< node; -1: not this rank's
  std::vector<int> memory_of_leaf;  ///< by shard: the root that stands in this shard's memory; -1: from the pool
  int roots = 0;
};

/// One root for each of these subtrees.
[[nodiscard]] MergePlan tree_plan(const Tree& tree, const std::vector<TreeNode>& subtrees);
/// One root: the sum of the shards one after the other, as listed.
[[nodiscard]] MergePlan chain_plan(int all_shards, const std::vector<int>& shards);

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
  struct Bucket {
    std::mutex mutex;
    std::int64_t elements = 0;
    std::vector<float*> memory;  ///< by node; of leaves from buffer() on, of others once summed
    std::vector<char> done;      ///< by node: its sum is complete
    std::vector<float*> free;
  };
  float* take(Bucket& bucket);
  void give_back(Bucket& bucket, float* memory);

  BufferMemory& memory_;
  MergePlan plan_;
  std::function<float*(int, int)> root_memory_;
  std::vector<std::unique_ptr<Bucket>> buckets_;
  std::atomic<std::int64_t> alive_{0}, peak_{0};
};

}  // namespace lockstep::comm
