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

/// Bytes of what comes from the host for a shard: its tensors, the step's context, and the loss's scale.
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

void GpuGraphs::begin(std::vector<const void*> addresses) {
  if (addresses == addresses_) return;
  recorded_.clear();
  addresses_ = std::move(addresses);
}

GpuGraphs::Recorded& GpuGraphs::at(std::size_t part, std::span<const comm::GradientBuffer> buffers) {
  key_.assign(1, part);
  for (const comm::GradientBuffer& buffer : buffers) {
    key_.push_back(reinterpret_cast<std::uintptr_t>(buffer.memory));
    key_.push_back(buffer.add ? 1 : 0);
  }
  return recorded_[key_];
}

GpuWorker::GpuWorker(const ProgramSetup& setup, std::shared_ptr<GpuWorkerStream> stream, KernelSet kernels, bool graphs,
                     std::shared_ptr<const InputFiller> filler)
    : program_(setup.program),
      stream_(std::move(stream)),
      gpu_(stream_->gpu),
      runner_(program_, std::move(kernels)),
      gradients_(program_),
      filler_(std::move(filler)),
      part_bytes_(staged_bytes(setup.graph, filler_.get())),
      stage_(gpu_, stream_->stream, block_bytes(part_bytes_), 1),
      graphs_(graphs ? std::make_unique<GpuGraphs>(gpu_, stream_->stream) : nullptr),
      all_computed_(gpu_.make_event()) {
  const Graph& graph = setup.graph;
  if (filler_ != nullptr) {
    const auto bytes = tensor_bytes(graph, nullptr);
    filled_ = device::GpuBlock(gpu_, block_bytes(bytes));
    place_parts(filled_.get(), bytes, filled_inputs_);
    inputs_.assign(filled_inputs_.begin(), filled_inputs_.end());
  }
  const Results& results = program_.results;
  const std::size_t column = static_cast<std::size_t>(setup.shard_samples()) * sizeof(float);
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
  const float loss_scale = call.gradients == nullptr ? 1 : call.gradients->loss_scale;
  LOCKSTEP_CHECK(runner_.kernels().scales_loss() || loss_scale == 1, "a GPU scales the loss of float16 only");
  parts_.clear();
  for (std::size_t i = 0; i + 2 < part_bytes_.size(); ++i) {
    parts_.emplace_back(static_cast<const std::byte*>(call.inputs.tensors[i]), part_bytes_[i]);
  }
  parts_.push_back(std::as_bytes(std::span(&call.context, 1)));
  parts_.push_back(std::as_bytes(std::span(&loss_scale, 1)));
  stage_.put(parts_);
  place_parts(stage_.take(), part_bytes_, staged_);
  loss_scale_ = reinterpret_cast<const float*>(staged_.back());
  staged_.pop_back();
  context_ = reinterpret_cast<const StepContext*>(staged_.back());
  staged_.pop_back();
  if (filler_ == nullptr) {
    inputs_.assign(staged_.begin(), staged_.end());
    return;
  }
  stream_->enter(call.context.step, "inputs");
  filler_->fill(stream_->stream, staged_, filled_inputs_);
}

std::vector<const void*> GpuWorker::addresses(const ModelView& model, const std::byte* arena) const {
  std::vector<const void*> addresses = {arena, context_, loss_scale_};
  addresses.insert(addresses.end(), inputs_.begin(), inputs_.end());
  addresses.insert(addresses.end(), model.parameters.begin(), model.parameters.end());
  addresses.insert(addresses.end(), model.low_precision.begin(), model.low_precision.end());
  addresses.insert(addresses.end(), model.states.begin(), model.states.end());
  return addresses;
}

void GpuWorker::launch_program(const ShardCall& call) {
  const ShardOperands operands{.inputs = inputs_,
                               .model = call.model,
                               .slots = gradients_.slots(),
                               .context = context_,
                               .step = call.context.step,
                               .loss_scale = runner_.kernels().scales_loss() ? loss_scale_ : nullptr};
  const device::Gpu::Stream stream = stream_->stream;
  TraceRanges* const ranges = call.trace == nullptr ? nullptr : call.trace->ranges();
  runner_.mark_ops(ranges);
  const bool in_graphs = graphs_ != nullptr && ranges == nullptr;  // whoever marks ops wants to see each
  const std::byte* const arena = runner_.begin();
  if (in_graphs) graphs_->begin(addresses(call.model, arena));
  const std::size_t all = program_.instructions.size();
  for (std::size_t first = 0, last = 0; first < all; first = last) {
    last = gradients_.end_of_part(first);
    for (std::size_t i = first; i < last; ++i) {
      gradients_.before(i, [&](const comm::GradientBuffer& buffer) { gpu_.wait(stream, buffer.free); });
    }
    const auto launch = [&] {
      for (std::size_t i = first; i < last; ++i) runner_.run(i, operands);
    };
    const auto name = [&] { return runner_.label(first) + " ... " + runner_.label(last - 1); };
    in_graphs ? graphs_->run(first, gradients_.open_buckets(), call.context.step, launch, name) : launch();
    for (std::size_t i = first; i < last; ++i) {
      gradients_.after(i, [&](const comm::GradientBuffer& buffer) { gpu_.record(buffer.written, stream); });
    }
  }
}

double GpuWorker::run(const ShardCall& call) {
  const device::Gpu::Stream stream = stream_->stream;
  gpu_.make_current();
  gradients_.begin(call);
  launch_inputs(call);
  gpu_.wait(stream, call.model.changed);
  launch_program(call);
  stage_.release();
  for (const Result& result : results_) {
    gpu_.copy_out(stream, result.pinned, reinterpret_cast<const std::byte*>(runner_.result(result.location)),
                  result.bytes);
  }
  stream_->arena.used_by(stream);
  gpu_.record(all_computed_, stream);
  gpu_.wait(all_computed_);
  for (const Result& result : results_) gpu_.reads(result.pinned, result.bytes);
  return gradients_.seconds();
}

}  // namespace lockstep::exec
