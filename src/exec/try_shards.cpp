// Executor::try_shards: how fast this rank computes, before or beside the steps.
#include <algorithm>
#include <numeric>

#include "core/spans.hpp"
#include "exec/executor.hpp"

namespace lockstep::exec {

namespace {

AlignedBytes zeros(std::int64_t bytes) {
  AlignedBytes memory(static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1)));
  std::fill_n(memory.data(), memory.size(), std::byte{0});
  return memory;
}

// Where each slot would lie if all buckets were one.
std::vector<std::int64_t> slot_starts(const GradientLayout& layout) {
  std::vector<std::int64_t> bucket_start(layout.buckets.size() + 1, 0), starts;
  for (std::size_t b = 0; b < layout.buckets.size(); ++b) {
    bucket_start[b + 1] = bucket_start[b] + layout.buckets[b].elements;
  }
  for (const SlotPlace& place : layout.slots) {
    starts.push_back(bucket_start[static_cast<std::size_t>(place.bucket)] + place.offset);
  }
  return starts;
}

}  // namespace

std::vector<double> Executor::try_shards(int count, const GradientLayout& layout) {
  ++version_;
  std::vector<AlignedBytes> inputs, gradients;
  ShardInputs shard_inputs;
  for (const ValueId id : graph_.inputs) {
    inputs.push_back(zeros(static_cast<std::int64_t>(graph_.at(id).spec.bytes())));
    shard_inputs.tensors.push_back(inputs.back().data());
    shard_inputs.valid = graph_.at(id).spec.shape.front();
  }
  const auto starts = slot_starts(layout);
  const std::int64_t elements = std::accumulate(layout.buckets.begin(), layout.buckets.end(), std::int64_t{0},
                                                [](std::int64_t sum, const Bucket& b) { return sum + b.elements; });
  for (Worker& worker : workers_) {
    gradients.push_back(zeros(elements * static_cast<std::int64_t>(sizeof(float))));
    auto* memory = reinterpret_cast<float*>(gradients.back().data());
    for (std::size_t s = 0; s < starts.size(); ++s) worker.slots[s] = {memory + starts[s], false};
    worker.inputs = shard_inputs;
  }
  std::vector<double> seconds(static_cast<std::size_t>(count));
  pool_.run(count, [&](int index, int task) {
    Worker& worker = workers_[static_cast<std::size_t>(index)];
    const StepContext step_context = context(0, 0);
    const auto start = Clock::now();
    worker.runner->run(
        binding(worker, step_context), [](std::size_t) {}, [](std::size_t) {});
    seconds[static_cast<std::size_t>(task)] = seconds_since(start);
  });
  return seconds;
}

}  // namespace lockstep::exec
