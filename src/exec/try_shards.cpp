// Executor::try_shards: how fast this rank computes, before or beside the steps.
#include <algorithm>

#include "core/spans.hpp"
#include "exec/executor.hpp"

namespace lockstep::exec {

namespace {

AlignedBytes zeros(std::int64_t bytes) {
  AlignedBytes memory(static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1)));
  std::fill_n(memory.data(), memory.size(), std::byte{0});
  return memory;
}

/// Gradients that nobody wants.
class NoSink final : public BucketSink {
 public:
  /// `gpu`: null on the CPU.
  NoSink(const GradientLayout& layout, device::Gpu* gpu) {
    std::int64_t elements = 0;
    for (const Bucket& bucket : layout.buckets) {
      starts_.push_back(elements);
      elements += bucket.elements;
    }
    const std::int64_t bytes = elements * static_cast<std::int64_t>(sizeof(float));
    if (gpu == nullptr) {
      host_ = zeros(bytes);
      buffer_.memory = reinterpret_cast<float*>(host_.data());
    } else {
      gpu->make_current();
      device_ = device::GpuBlock(*gpu, static_cast<std::size_t>(bytes));
      buffer_ = {device_.as<float>(), false, gpu->make_event(), gpu->make_event()};
    }
  }
  comm::GradientBuffer buffer(int bucket) override {
    comm::GradientBuffer buffer = buffer_;
    buffer.memory += starts_[static_cast<std::size_t>(bucket)];
    return buffer;
  }
  void ready(int /*bucket*/) override {}

 private:
  std::vector<std::int64_t> starts_;
  AlignedBytes host_;
  device::GpuBlock device_;
  comm::GradientBuffer buffer_;  ///< of the first bucket
};

}  // namespace

std::vector<double> Executor::try_shards(int count, const GradientLayout& layout) {
  begin();
  std::vector<AlignedBytes> inputs;
  ShardInputs shard_inputs;
  shard_inputs.valid = shard_samples();
  for (const std::size_t bytes : tensor_bytes(graph_, filler_.get())) {
    inputs.push_back(zeros(static_cast<std::int64_t>(bytes)));
    shard_inputs.tensors.push_back(inputs.back().data());
  }
  device::Gpu* const gpu = device_.is_gpu() ? &device_.lanes->gpu() : nullptr;
  std::vector<NoSink> sinks;
  sinks.reserve(workers_.size());
  for (std::size_t i = 0; i < workers_.size(); ++i) sinks.emplace_back(layout, gpu);
  std::vector<double> seconds(static_cast<std::size_t>(count));
  pool_.run(count, [&](int index, int task) {
    const auto worker = static_cast<std::size_t>(index);
    const StepContext step_context = context(0, 0);
    ShardCall shard_call = call(shard_inputs, step_context);
    shard_call.layout = &layout;
    shard_call.sink = &sinks[worker];
    const auto start = Clock::now();
    workers_[worker].computes->run(shard_call);
    seconds[static_cast<std::size_t>(task)] = seconds_since(start);
  });
  return seconds;
}

}  // namespace lockstep::exec
