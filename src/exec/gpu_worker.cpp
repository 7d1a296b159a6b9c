#include "exec/gpu_worker.hpp"

#include <algorithm>

#include "lockstep/error.hpp"

namespace lockstep::exec {

using backend::InputStage;

std::size_t GpuWorker::input_bytes(const Graph& graph) {
  std::size_t bytes = 0;
  for (const ValueId id : graph.inputs) bytes = InputStage::up_to_part(bytes) + graph.at(id).spec.bytes();
  return InputStage::up_to_part(bytes) + sizeof(StepContext);
}

GpuWorker::GpuWorker(const Graph& graph, const Program& program, KernelSet kernels, backend::GpuLane& lane, bool graphs)
    : graph_(graph),
      program_(program),
      lane_(lane),
      gpu_(lane.gpu),
      runner_(program, std::move(kernels), &lane),
      stage_(gpu_, lane.compute, input_bytes(graph), 1),
      graphs_(gpu_, lane.compute),
      with_graphs_(graphs),
      all_computed_(gpu_.make_event()) {
  buckets_.slots.resize(program.slots.size());
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
    for (const Result& result : results_) gpu_.free_pinned(result.pinned);
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

void GpuWorker::put_inputs(const ShardInputs& inputs, const StepContext& step) {
  parts_.clear();
  for (std::size_t i = 0; i < graph_.inputs.size(); ++i) {
    parts_.emplace_back(static_cast<const std::byte*>(inputs.tensors[i]), graph_.at(graph_.inputs[i]).spec.bytes());
  }
  parts_.push_back(std::as_bytes(std::span(&step, 1)));
  stage_.put(parts_);
  const std::byte* memory = stage_.take();
  inputs_.clear();
  std::size_t at = 0;
  for (const auto part : parts_) {
    at = InputStage::up_to_part(at);
    inputs_.push_back(memory + at);
    at += part.size();
  }
  step_ = static_cast<const StepContext*>(inputs_.back());
  inputs_.pop_back();
}

std::vector<const void*> GpuWorker::addresses(const ShardCall& call) {
  std::vector<const void*> addresses = {runner_.begin(), step_};
  addresses.insert(addresses.end(), inputs_.begin(), inputs_.end());
  addresses.insert(addresses.end(), call.parameters.begin(), call.parameters.end());
  addresses.insert(addresses.end(), call.narrow.begin(), call.narrow.end());
  addresses.insert(addresses.end(), call.states.begin(), call.states.end());
  return addresses;
}

void GpuWorker::put_program(const ShardCall& call) {
  const ShardBinding binding{.inputs = inputs_,
                             .parameters = call.parameters,
                             .narrow = call.narrow,
                             .states = call.states,
                             .slots = buckets_.slots,
                             .step = &call.step,
                             .step_of_kernels = step_,
                             .loss_scale = call.loss_scale};
  // A profile wants to hear of each op.
  const bool graphs = with_graphs_ && call.ranges == nullptr;
  graphs_.begin(addresses(call));
  BucketWalk walk(program_, call, buckets_);
  const std::size_t all = program_.instructions.size();
  for (std::size_t first = 0, last = 0; first < all; first = last) {
    last = walk.end_of_part(first);
    for (std::size_t i = first; i < last; ++i) {
      walk.before(i, [&](const comm::Leaf& leaf) { gpu_.wait(lane_.compute, leaf.free); });
    }
    const auto put = [&] {
      for (std::size_t i = first; i < last; ++i) runner_.run(i, binding);
    };
    const auto name = [&] { return runner_.label(first) + " ... " + runner_.label(last - 1); };
    graphs ? graphs_.run(first, walk.open_leaves(), call.step.step, put, name) : put();
    for (std::size_t i = first; i < last; ++i) {
      walk.after(i, [&](const comm::Leaf& leaf) { gpu_.record(leaf.written, lane_.compute); });
    }
  }
}

void GpuWorker::run(const ShardCall& call) {
  gpu_.make_current();
  runner_.tell_ops(call.ranges);
  put_inputs(call.inputs, call.step);
  gpu_.wait(lane_.compute, call.parameters_there);
  put_program(call);
  stage_.release();
  for (const Result& result : results_) {
    gpu_.copy_out(lane_.compute, result.pinned, reinterpret_cast<const std::byte*>(runner_.result(result.location)),
                  result.bytes);
  }
  lane_.arena.used_by(lane_.compute);
  gpu_.record(all_computed_, lane_.compute);
  gpu_.wait(all_computed_);
  for (const Result& result : results_) gpu_.reads(result.pinned, result.bytes);
}

}  // namespace lockstep::exec
