#include "exec/gpu_worker.hpp"

#include <algorithm>

#include "lockstep/error.hpp"

namespace lockstep::exec {

namespace {

using device::InputStage;

/// Of a block that holds all parts, each from a multiple of InputStage::kPart on.
std::size_t block_bytes(const std::vector<std::size_t>& parts) {
  std::size_t bytes = 0;
  for (const std::size_t part : parts) bytes = InputStage::up_to_part(bytes) + part;
  return std::max<std::size_t>(bytes, 1);
}

/// Where the parts of such a block lie.
template <class Byte>
void place_parts(Byte* block, const std::vector<std::size_t>& parts, std::vector<Byte*>& places) {
  places.clear();
  std::size_t at = 0;
  for (const std::size_t part : parts) {
    at = InputStage::up_to_part(at);
    places.push_back(block + at);
    at += part;
  }
}

/// Bytes of what comes from the host for a shard: its tensors, the step, and the loss's scale.
std::vector<std::size_t> staged_bytes(const Graph& graph, const InputFiller* filler) {
  auto bytes = tensor_bytes(graph, filler);
  bytes.push_back(sizeof(StepContext));
  bytes.push_back(sizeof(float));
  return bytes;
}

}  // namespace

std::size_t GpuWorker::input_bytes(const Graph& graph) {
  return block_bytes(staged_bytes(graph, nullptr));
}

GpuWorker::GpuWorker(const Graph& graph, const Program& program, KernelSet kernels, device::GpuLane& lane,
                     const GpuWorkerOptions& options)
    : program_(program),
      lane_(lane),
      gpu_(lane.gpu),
      runner_(program, std::move(kernels), &lane),
      filler_(options.filler),
      part_bytes_(staged_bytes(graph, filler_.get())),
      stage_(gpu_, lane.compute, block_bytes(part_bytes_), 1),
      graphs_(gpu_, lane.compute),
      with_graphs_(options.graphs),
      all_computed_(gpu_.make_event()) {
  buckets_.slots.resize(program.slots.size());
  if (filler_ != nullptr) {
    const auto bytes = tensor_bytes(graph, nullptr);
    filled_ = device::GpuBlock(gpu_, block_bytes(bytes));
    place_parts(filled_.get(), bytes, filled_places_);
    inputs_.assign(filled_places_.begin(), filled_places_.end());
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

void GpuWorker::launch_inputs(const ShardCall& call) {
  parts_.clear();
  for (std::size_t i = 0; i + 2 < part_bytes_.size(); ++i) {
    parts_.emplace_back(static_cast<const std::byte*>(call.inputs.tensors[i]), part_bytes_[i]);
  }
  parts_.push_back(std::as_bytes(std::span(&call.step, 1)));
  parts_.push_back(std::as_bytes(std::span(&call.loss_scale, 1)));
  stage_.put(parts_);
  place_parts(stage_.take(), part_bytes_, staged_);
  loss_scale_ = reinterpret_cast<const float*>(staged_.back());
  staged_.pop_back();
  step_ = reinterpret_cast<const StepContext*>(staged_.back());
  staged_.pop_back();
  if (filler_ == nullptr) {
    inputs_.assign(staged_.begin(), staged_.end());
    return;
  }
  gpu_.enter(lane_.compute, call.step.step, "inputs");
  filler_->fill(lane_.compute, staged_, filled_places_);
}

std::vector<const void*> GpuWorker::addresses(const ShardCall& call, const std::byte* arena) const {
  std::vector<const void*> addresses = {arena, step_, loss_scale_};
  addresses.insert(addresses.end(), inputs_.begin(), inputs_.end());
  addresses.insert(addresses.end(), call.parameters.begin(), call.parameters.end());
  addresses.insert(addresses.end(), call.low_precision.begin(), call.low_precision.end());
  addresses.insert(addresses.end(), call.states.begin(), call.states.end());
  return addresses;
}

void GpuWorker::launch_program(const ShardCall& call) {
  const ShardBinding binding{.inputs = inputs_,
                             .parameters = call.parameters,
                             .low_precision = call.low_precision,
                             .states = call.states,
                             .slots = buckets_.slots,
                             .step = &call.step,
                             .step_of_kernels = step_,
                             .loss_scale = call.loss_scale,
                             .loss_scale_of_kernels = loss_scale_};
  // A profile wants to hear of each op.
  const bool graphs = with_graphs_ && call.ranges == nullptr;
  const std::byte* const arena = runner_.begin();
  if (graphs) graphs_.begin(addresses(call, arena));
  BucketWalk walk(program_, call, buckets_);
  const std::size_t all = program_.instructions.size();
  for (std::size_t first = 0, last = 0; first < all; first = last) {
    last = walk.end_of_part(first);
    for (std::size_t i = first; i < last; ++i) {
      walk.before(i, [&](const comm::GradientBuffer& buffer) { gpu_.wait(lane_.compute, buffer.free); });
    }
    const auto launch = [&] {
      for (std::size_t i = first; i < last; ++i) runner_.run(i, binding);
    };
    const auto name = [&] { return runner_.label(first) + " ... " + runner_.label(last - 1); };
    graphs ? graphs_.run(first, walk.open_buffers(), call.step.step, launch, name) : launch();
    for (std::size_t i = first; i < last; ++i) {
      walk.after(i, [&](const comm::GradientBuffer& buffer) { gpu_.record(buffer.written, lane_.compute); });
    }
  }
}

void GpuWorker::run(const ShardCall& call) {
  gpu_.make_current();
  runner_.tell_ops(call.ranges);
  launch_inputs(call);
  gpu_.wait(lane_.compute, call.parameters_there);
  launch_program(call);
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
