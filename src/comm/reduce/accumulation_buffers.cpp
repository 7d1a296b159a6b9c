#include "comm/reduce/accumulation_buffers.hpp"

#include <algorithm>
#include <utility>

#include "device/cpu/add.hpp"
#include "lockstep/error.hpp"
#include "lockstep/tensor.hpp"

namespace lockstep::comm {

namespace {

struct PlanBuilder {
  MergePlan plan;

  explicit PlanBuilder(int shards) {
    plan.leaf_of_shard.assign(static_cast<std::size_t>(shards), -1);
    plan.memory_of_leaf.assign(static_cast<std::size_t>(shards), -1);
  }
  int node() {
    plan.nodes.emplace_back();
    return static_cast<int>(plan.nodes.size()) - 1;
  }
  MergePlan::Node& at(int node) { return plan.nodes[static_cast<std::size_t>(node)]; }
  int leaf(int shard) { return plan.leaf_of_shard[static_cast<std::size_t>(shard)] = node(); }
  int join(int left, int right) {
    const int parent = node();
    at(left) = {parent, right, true, -1};
    at(right) = {parent, left, false, -1};
    return parent;
  }
  void root(int node, int first_shard) {
    at(node).root = plan.roots;
    plan.memory_of_leaf[static_cast<std::size_t>(first_shard)] = plan.roots++;
  }
  int subtree(const Tree& tree, TreeNode n) {
    if (n.level == 0) return leaf(n.index);
    const int left = subtree(tree, tree.left(n));
    return join(left, subtree(tree, tree.right(n)));
  }
};

class HostBufferMemory final : public BufferMemory {
 public:
  float* allocate(std::int64_t elements) override {
    AlignedBytes block(static_cast<std::size_t>(std::max<std::int64_t>(elements, 1)) * sizeof(float));
    const std::lock_guard lock(mutex_);
    blocks_.push_back(std::move(block));
    return reinterpret_cast<float*>(blocks_.back().data());
  }
  void add(float* left, float* right, std::int64_t elements) override { device::add(left, right, left, elements); }
  [[nodiscard]] bool takes_more() const override { return true; }

 private:
  std::mutex mutex_;
  std::vector<AlignedBytes> blocks_;
};

}  // namespace

std::unique_ptr<BufferMemory> host_buffer_memory() {
  return std::make_unique<HostBufferMemory>();
}

MergePlan tree_plan(const Tree& tree, const std::vector<TreeNode>& subtrees) {
  PlanBuilder builder(tree.leaves());
  for (const TreeNode node : subtrees) builder.root(builder.subtree(tree, node), tree.first(node));
  return std::move(builder.plan);
}

MergePlan chain_plan(int all_shards, const std::vector<int>& shards) {
  PlanBuilder builder(all_shards);
  if (shards.empty()) return std::move(builder.plan);
  int sum = builder.leaf(shards[0]);
  for (std::size_t i = 1; i < shards.size(); ++i) sum = builder.join(sum, builder.leaf(shards[i]));
  builder.root(sum, shards[0]);
  return std::move(builder.plan);
}

AccumulationBuffers::AccumulationBuffers(const GradientBuckets& buckets, BufferMemory& memory) : memory_(memory) {
  for (const GradientBuckets::Bucket& bucket : buckets.buckets) {
    buckets_.push_back(std::make_unique<Bucket>());
    buckets_.back()->elements = bucket.elements;
  }
}

void AccumulationBuffers::begin(std::function<float*(int root, int bucket)> root_memory) {
  root_memory_ = std::move(root_memory);
  for (const auto& bucket : buckets_) {
    bucket->memory.assign(plan_.nodes.size(), nullptr);
    bucket->done.assign(plan_.nodes.size(), 0);
  }
}

float* AccumulationBuffers::take(Bucket& bucket) {
  if (bucket.free.empty()) bucket.free.push_back(memory_.allocate(bucket.elements));
  float* memory = bucket.free.back();
  bucket.free.pop_back();
  const std::int64_t alive = alive_ += bucket.elements;
  for (std::int64_t peak = peak_; alive > peak && !peak_.compare_exchange_weak(peak, alive);) {
  }
  return memory;
}

void AccumulationBuffers::give_back(Bucket& bucket, float* memory) {
  bucket.free.push_back(memory);
  alive_ -= bucket.elements;
}

GradientBuffer AccumulationBuffers::buffer(int shard, int bucket_index) {
  const int node = plan_.leaf_of_shard.at(static_cast<std::size_t>(shard));
  LOCKSTEP_CHECK(node >= 0, "a rank may only fill its own shards");
  Bucket& bucket = *buckets_.at(static_cast<std::size_t>(bucket_index));
  const MergePlan::Node& place = plan_.nodes[static_cast<std::size_t>(node)];
  const std::lock_guard lock(bucket.mutex);
  float*& memory = bucket.memory[static_cast<std::size_t>(node)];
  LOCKSTEP_CHECK(memory == nullptr, "buffer() once for a shard and bucket");
  if (memory_.takes_more() && place.parent >= 0 && !place.is_left &&
      bucket.done[static_cast<std::size_t>(place.sibling)] != 0) {
    memory = bucket.memory[static_cast<std::size_t>(place.sibling)];
    return {memory, true};
  }
  const int root = plan_.memory_of_leaf[static_cast<std::size_t>(shard)];
  memory = root >= 0 ? root_memory_(root, bucket_index) : take(bucket);
  return {memory, false};
}

float* AccumulationBuffers::memory_of(int shard, int bucket_index) {
  Bucket& bucket = *buckets_.at(static_cast<std::size_t>(bucket_index));
  const std::lock_guard lock(bucket.mutex);
  return bucket.memory[static_cast<std::size_t>(plan_.leaf_of_shard.at(static_cast<std::size_t>(shard)))];
}

std::optional<int> AccumulationBuffers::ready(int shard, int bucket_index) {
  Bucket& bucket = *buckets_.at(static_cast<std::size_t>(bucket_index));
  int node = plan_.leaf_of_shard.at(static_cast<std::size_t>(shard));
  std::unique_lock lock(bucket.mutex);
  float* sum = node < 0 ? nullptr : bucket.memory[static_cast<std::size_t>(node)];
  LOCKSTEP_CHECK(sum != nullptr, "ready() comes after buffer()");
  LOCKSTEP_CHECK(bucket.done[static_cast<std::size_t>(node)] == 0, "ready() once for a shard and bucket");
  while (true) {
    const MergePlan::Node& place = plan_.nodes[static_cast<std::size_t>(node)];
    bucket.memory[static_cast<std::size_t>(node)] = sum;
    bucket.done[static_cast<std::size_t>(node)] = 1;
    if (place.parent < 0) return place.root;
    if (bucket.done[static_cast<std::size_t>(place.sibling)] == 0) return std::nullopt;  // the sibling will merge
    float* other = bucket.memory[static_cast<std::size_t>(place.sibling)];
    float *left = place.is_left ? sum : other, *right = place.is_left ? other : sum;
    if (left != right) {  // else the leaf was added while it was computed
      lock.unlock();
      memory_.add(left, right, bucket.elements);
      lock.lock();
      give_back(bucket, right);
    }
    sum = left;
    node = place.parent;
  }
}

}  // namespace lockstep::comm
