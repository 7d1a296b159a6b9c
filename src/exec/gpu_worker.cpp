#include "exec/gpu_worker.hpp"

#include <algorithm>
#include <cstring>

#include "comm/add.hpp"
#include "lockstep/error.hpp"

namespace lockstep::exec {

using backend::InputStage;

std::size_t GpuWorker::input_bytes(const Graph& graph) {
  std::size_t bytes = 0;
  for (const ValueId id : graph.inputs) bytes = InputStage::up_to_part(bytes) + graph.at(id).spec.bytes();
  return std::max<std::size_t>(bytes, 1);
}

std::size_t GpuWorker::gradient_bytes(const Program& program) {
  std::int64_t elements = 0;  // however they are cut into buckets
  for (const Bucket& bucket : make_gradient_layout(program, 1).buckets) elements += bucket.elements;
  return static_cast<std::size_t>(elements) * sizeof(float);
}

GpuWorker::GpuWorker(const Graph& graph, const Program& program, KernelSet kernels, backend::GpuLane& lane)
    : graph_(graph),
      program_(program),
      lane_(lane),
      gpu_(lane.gpu),
      runner_(program, std::move(kernels), &lane),
      stage_(gpu_, lane.compute, input_bytes(graph), 1),
      slots_(program.slots.size()),
      all_computed_(gpu_.make_event()) {
  if (const std::size_t bytes = gradient_bytes(program); bytes > 0) {
    gradients_ = {gpu_.allocate(bytes), gpu_.allocate_pinned(bytes)};
  }
  const Results& results = program.results;
  const std::size_t column =
      graph.inputs.empty()
          ? 0
          : static_cast<std::size_t>(graph.at(graph.inputs.front()).spec.shape.front()) * sizeof(float);
  want_result(results.loss, column);
  want_result(results.count, column);
  for (const auto& [value, count] : results.metrics) {
    want_result(value, column);
    want_result(count, column);
  }
  if (graph.output >= 0) want_result(results.prediction, graph.at(graph.output).spec.bytes());
}

GpuWorker::~GpuWorker() {
  try {
    gpu_.make_current();
    gpu_.wait(all_computed_);
    for (const auto event : arrived_) gpu_.wait(event);
    for (const Result& result : results_) gpu_.free_pinned(result.pinned);
    if (gradients_.device == nullptr) return;
    gpu_.free(gradients_.device);
    gpu_.free_pinned(gradients_.pinned);
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch): the GPU is lost, and its memory with it
  }
}

void GpuWorker::want_result(const Location& location, std::size_t bytes) {
  if (location.space != Space::arena) return;
  results_.push_back({location, bytes, gpu_.allocate_pinned(std::max<std::size_t>(bytes, 1))});
}

const float* GpuWorker::result(const Location& location) const {
  const auto found =
      std::find_if(results_.begin(), results_.end(), [&](const Result& r) { return r.location == location; });
  return found == results_.end() ? nullptr : reinterpret_cast<const float*>(found->pinned);
}

void GpuWorker::put_inputs(const ShardInputs& inputs) {
  parts_.clear();
  for (std::size_t i = 0; i < graph_.inputs.size(); ++i) {
    parts_.emplace_back(static_cast<const std::byte*>(inputs.tensors[i]), graph_.at(graph_.inputs[i]).spec.bytes());
  }
  stage_.put(parts_);
  const std::byte* memory = stage_.take();
  inputs_.clear();
  std::size_t at = 0;
  for (const auto part : parts_) {
    at = InputStage::up_to_part(at);
    inputs_.push_back(memory + at);
    at += part.size();
  }
}

void GpuWorker::use_layout(const GradientLayout& layout) {
  if (!bucket_start_.empty()) return;
  std::size_t at = 0;
  for (const Bucket& bucket : layout.buckets) {
    bucket_start_.push_back(at);
    bucket_bytes_.push_back(static_cast<std::size_t>(bucket.elements) * sizeof(float));
    at += bucket_bytes_.back();
    computed_.push_back(gpu_.make_event());
    arrived_.push_back(gpu_.make_event());
  }
  LOCKSTEP_CHECK(at <= gradient_bytes(program_), "buckets are slots, padded");
  for (std::size_t s = 0; s < slots_.size(); ++s) {
    const SlotPlace& place = layout.slots[s];
    auto* const bucket = gradients_.device + bucket_start_[static_cast<std::size_t>(place.bucket)];
    slots_[s] = {reinterpret_cast<float*>(bucket) + place.offset, false};
  }
}

void GpuWorker::send_out(std::size_t bucket) {
  gpu_.record(computed_[bucket], lane_.compute);
  gpu_.wait(lane_.out, computed_[bucket]);
  gpu_.copy_out(lane_.out, gradients_.pinned + bucket_start_[bucket], gradients_.device + bucket_start_[bucket],
                bucket_bytes_[bucket]);
  gpu_.record(arrived_[bucket], lane_.out);
}

void GpuWorker::run(const ShardCall& call) {
  gpu_.make_current();
  runner_.tell_ops(call.ranges);
  put_inputs(call.inputs);
  if (call.sink != nullptr) use_layout(*call.layout);
  std::size_t closed = 0;
  runner_.run(
      {.inputs = inputs_, .parameters = call.parameters, .states = call.states, .slots = slots_, .step = &call.step},
      [](std::size_t) {},
      [&](std::size_t i) {
        if (call.sink == nullptr) return;
        const auto& buckets = call.layout->buckets;
        const auto slots_done = program_.instructions[i].slots_done;
        for (; closed < buckets.size() && buckets[closed].last_slot <= slots_done; ++closed) send_out(closed);
      });
  stage_.release();
  for (const Result& result : results_) {
    gpu_.copy_out(lane_.compute, result.pinned, reinterpret_cast<const std::byte*>(runner_.result(result.location)),
                  result.bytes);
  }
  lane_.arena.used_by(lane_.compute);
  gpu_.record(all_computed_, lane_.compute);
  if (call.sink != nullptr) hand_over(*call.layout, *call.sink);
  gpu_.wait(all_computed_);
  for (const Result& result : results_) gpu_.reads(result.pinned, result.bytes);
}

void GpuWorker::hand_over(const GradientLayout& layout, BucketSink& sink) {
  for (std::size_t b = 0; b < layout.buckets.size(); ++b) {
    gpu_.wait(arrived_[b]);
    const std::byte* memory = gradients_.pinned + bucket_start_[b];
    gpu_.reads(memory, bucket_bytes_[b]);
    const comm::Leaf leaf = sink.leaf(static_cast<int>(b));
    if (leaf.add) {
      comm::accumulate(leaf.memory, reinterpret_cast<const float*>(memory), layout.buckets[b].elements);
    } else {
      std::memcpy(leaf.memory, memory, bucket_bytes_[b]);
    }
    sink.ready(static_cast<int>(b));
  }
}

}  // namespace lockstep::exec
