#include "comm/reduce/tree_sums.hpp"

#include <algorithm>
#include <deque>
#include <utility>

#include "core/round_up.hpp"
#include "device/cpu/add.hpp"
#include "lockstep/error.hpp"

namespace lockstep::comm {

namespace {

constexpr std::int64_t kBlockElements = 4096;  // small enough to stay in the cache

class HostBufferMemory final : public BufferMemory {
 public:
  float* allocate(std::int64_t elements) override {
    AlignedBytes block((std::max<std::int64_t>(elements, 1)) * sizeof(float));
    const std::lock_guard lock(mutex_);
    blocks_.push_back(std::move(block));
    return reinterpret_cast<float*>(blocks_.back().data());
  }
  void add(float* left, float* right, std::int64_t elements) override { device::add(left, right, left, elements); }
  bool takes_more() const override { return true; }

 private:
  std::mutex mutex_;
  std::vector<AlignedBytes> blocks_;
};

/// Counts what is requested; nothing is written to it.
class CountedMemory final : public BufferMemory {
 public:
  float* allocate(std::int64_t /*elements*/) override { return &nowhere_.emplace_back(); }
  void add(float* /*left*/, float* /*right*/, std::int64_t /*elements*/) override {}
  bool takes_more() const override { return true; }
  int count() const { return nowhere_.size(); }

 private:
  std::deque<float> nowhere_;  // distinct addresses
};

}  // namespace

std::unique_ptr<BufferMemory> host_buffer_memory() {
  return std::make_unique<HostBufferMemory>();
}

AccumulationBuffers::AccumulationBuffers(const GradientBuckets& buckets, BufferMemory& memory) : memory_(memory) {
  for (const GradientBuckets::Bucket& bucket : buckets.buckets) {
    buckets_.push_back(std::make_unique<BucketSums>());
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

std::vector<std::vector<int>> waves_of(std::span<const int> micro_batches, int workers) {
  std::vector<std::vector<int>> waves;
  for (std::size_t i = 0; i < micro_batches.size(); ++i) {
    if (i % workers == 0) waves.emplace_back();
    waves.back().push_back(micro_batches[i]);
  }
  return waves;
}

int AccumulationBuffers::most_waiting(MergePlan plan, std::span<const std::vector<int>> waves) {
  CountedMemory memory;
  AccumulationBuffers sums({.buckets = {{.elements = 1}}}, memory);
  sums.use(std::move(plan));
  float root_memory = 0;
  sums.begin([&](int, int) { return &root_memory; });
  for (const std::vector<int>& wave : waves) {
    for (const int micro_batch : wave) (void)sums.buffer(micro_batch, 0);
    for (const int micro_batch : wave) (void)sums.ready(micro_batch, 0);
  }
  return memory.count();
}

void AccumulationBuffers::reserve(int bucket_index, int buffers) {
  BucketSums& bucket = *buckets_[bucket_index];
  while (std::ssize(bucket.free) < buffers) {
    bucket.free.push_back(memory_.allocate(bucket.elements));
    std::fill_n(bucket.free.back(), bucket.elements, 0.0F);
  }
}

float* AccumulationBuffers::take(BucketSums& bucket) {
  if (bucket.free.empty()) bucket.free.push_back(memory_.allocate(bucket.elements));
  float* memory = bucket.free.back();
  bucket.free.pop_back();
  const std::int64_t alive = alive_ += bucket.elements;
  for (std::int64_t peak = peak_; alive > peak && !peak_.compare_exchange_weak(peak, alive);) {
  }
  return memory;
}

void AccumulationBuffers::give_back(BucketSums& bucket, float* memory) {
  bucket.free.push_back(memory);
  alive_ -= bucket.elements;
}

GradientBuffer AccumulationBuffers::buffer(int micro_batch, int bucket_index) {
  const int node = plan_.leaf_of_micro_batch.at(micro_batch);
  LOCKSTEP_CHECK(node >= 0, "a rank may only fill its own micro-batches");
  BucketSums& bucket = *buckets_.at(bucket_index);
  const MergePlan::Node& at = plan_.nodes[node];
  const std::lock_guard lock(bucket.mutex);
  float*& memory = bucket.memory[node];
  LOCKSTEP_CHECK(memory == nullptr, "buffer() once for a micro-batch and bucket");
  if (memory_.takes_more() && at.parent >= 0 && !at.is_left && bucket.done[at.sibling] != 0) {
    memory = bucket.memory[at.sibling];
    return {memory, true};
  }
  const int root = plan_.memory_of_leaf[micro_batch];
  memory = root >= 0 ? root_memory_(root, bucket_index) : take(bucket);
  return {memory, false};
}

float* AccumulationBuffers::memory_of(int micro_batch, int bucket_index) {
  BucketSums& bucket = *buckets_.at(bucket_index);
  const std::lock_guard lock(bucket.mutex);
  return bucket.memory[plan_.leaf_of_micro_batch.at(micro_batch)];
}

std::optional<int> AccumulationBuffers::ready(int micro_batch, int bucket_index) {
  BucketSums& bucket = *buckets_.at(bucket_index);
  int node = plan_.leaf_of_micro_batch.at(micro_batch);
  std::unique_lock lock(bucket.mutex);
  float* sum = node < 0 ? nullptr : bucket.memory[node];
  LOCKSTEP_CHECK(sum != nullptr, "ready() comes after buffer()");
  LOCKSTEP_CHECK(bucket.done[static_cast<std::size_t>(node)] == 0, "ready() once for a micro-batch and bucket");
  while (true) {
    const MergePlan::Node& at = plan_.nodes[node];
    bucket.memory[node] = sum;
    bucket.done[node] = 1;
    if (at.parent < 0) return at.root;
    if (bucket.done[at.sibling] == 0) return std::nullopt;  // the sibling will merge them
    float* other = bucket.memory[at.sibling];
    float *left = at.is_left ? sum : other, *right = at.is_left ? other : sum;
    if (left != right) {  // else the leaf was already added while it was computed
      lock.unlock();
      memory_.add(left, right, bucket.elements);
      lock.lock();
      give_back(bucket, right);
    }
    sum = left;
    node = at.parent;
  }
}

Combiner::Combiner(std::span<const Addition> additions, std::size_t sources) {
  const int given = sources;
  std::vector<Operand> result(additions.size());
  std::vector<int> free;
  int blocks = 0;
  const auto operand = [&](int slot) {
    return slot < given ? Operand{Operand::Kind::partial, slot} : result[slot - given];
  };
  const auto release = [&](Operand o) {
    if (o.kind == Operand::Kind::scratch) free.push_back(o.index);
  };
  for (std::size_t i = 0; i < additions.size(); ++i) {
    const Operand left = operand(additions[i].left), right = operand(additions[i].right);
    Operand out{Operand::Kind::output, 0};
    if (i + 1 < additions.size()) {
      if (left.kind == Operand::Kind::scratch) {
        out = left;
      } else {
        if (free.empty()) free.push_back(blocks++);
        out = {Operand::Kind::scratch, free.back()};
        free.pop_back();
      }
    } else {
      release(left);
    }
    release(right);
    steps_.push_back({out, left, right});
    result[i] = out;
  }
  scratch_ = AlignedBytes((blocks * kBlockElements) * sizeof(float));
}

void Combiner::run(float* out, std::span<const float* const> sources, std::int64_t n) {
  if (steps_.empty()) {
    std::copy_n(sources[0], n, out);
    return;
  }
  auto* scratch = reinterpret_cast<float*>(scratch_.data());
  for (std::int64_t at = 0; at < n; at += kBlockElements) {
    const std::int64_t size = std::min(kBlockElements, n - at);
    const auto read = [&](Operand o) -> const float* {
      return o.kind == Operand::Kind::partial ? sources[o.index] + at : scratch + o.index * kBlockElements;
    };
    for (const Step& step : steps_) {
      float* to = step.out.kind == Operand::Kind::output ? out + at : scratch + step.out.index * kBlockElements;
      const float *left = read(step.left), *right = read(step.right);
      device::add(left, right, to, size);
    }
  }
}

}  // namespace lockstep::comm
