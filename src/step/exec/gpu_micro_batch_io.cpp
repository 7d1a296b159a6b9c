#include "step/exec/gpu_micro_batch_io.hpp"

#include <algorithm>
#include <utility>

#include "lockstep/error.hpp"

namespace lockstep::exec {

namespace {

using device::InputStage;

/// Size of a block that holds all parts, each aligned to InputStage::kPart.
std::size_t block_bytes(const std::vector<std::size_t>& parts) {
  std::size_t bytes = 0;
  for (const std::size_t part : parts) bytes = InputStage::up_to_part(bytes) + part;
  return std::max<std::size_t>(bytes, 1);
}

/// Addresses of the parts in such a block.
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

/// Bytes of what the host sends for a micro-batch: its tensors, the step's context, and the loss scale.
std::vector<std::size_t> staged_bytes(const Graph& graph, const InputFiller* filler) {
  auto bytes = tensor_bytes(graph, filler);
  bytes.push_back(sizeof(StepContext));
  bytes.push_back(sizeof(float));
  return bytes;
}

}  // namespace

std::size_t GpuInputs::bytes(const Graph& graph) {
  return block_bytes(staged_bytes(graph, nullptr));
}

GpuInputs::GpuInputs(const Graph& graph, GpuWorkerStream& stream, std::shared_ptr<const InputFiller> filler)
    : stream_(stream),
      filler_(std::move(filler)),
      part_bytes_(staged_bytes(graph, filler_.get())),
      stage_(stream.gpu, stream.stream, block_bytes(part_bytes_), 1) {
  if (filler_ == nullptr) return;
  const auto bytes = tensor_bytes(graph, nullptr);
  filled_ = device::GpuBlock(stream.gpu, block_bytes(bytes));
  place_parts(filled_.get(), bytes, filled_tensors_);
  tensors_.assign(filled_tensors_.begin(), filled_tensors_.end());
}

void GpuInputs::put(const MicroBatchCall& call) {
  const float loss_scale = call.gradients == nullptr ? 1 : call.gradients->loss_scale;
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
    tensors_.assign(staged_.begin(), staged_.end());
    return;
  }
  stream_.enter(call.context.step, "inputs");
  filler_->fill(stream_.stream, staged_, filled_tensors_);
}

GpuResults::GpuResults(const ProgramSetup& setup, GpuWorkerStream& stream)
    : stream_(stream), done_(stream.gpu.make_event()) {
  const Results& results = setup.program.results;
  const std::size_t column = setup.micro_batch_samples() * sizeof(float);
  want(results.loss, column);
  want(results.count, column);
  for (std::size_t m = 0; m < results.metrics.size(); ++m) {
    const auto& [values, count] = results.metrics[m];
    const Node& node = setup.graph.nodes[setup.graph.metrics[m]];
    want(values, setup.graph.at(node.outputs[0]).spec.bytes());
    want(count, column);
  }
  if (setup.graph.output >= 0) want(results.prediction, setup.graph.at(setup.graph.output).spec.bytes());
}

GpuResults::~GpuResults() {
  try {
    stream_.gpu.make_current();
    stream_.gpu.wait(done_);
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch): the GPU is lost, and its memory with it
  }
}

void GpuResults::want(const Location& location, std::size_t bytes) {
  if (location.space != Space::arena) return;
  results_.push_back({location, bytes, device::PinnedBlock(stream_.gpu, bytes)});
}

void GpuResults::take(const MicroBatchRunner& runner) {
  device::Gpu& gpu = stream_.gpu;
  for (const Result& result : results_) {
    gpu.copy_out(stream_.stream, result.pinned.get(),
                 reinterpret_cast<const std::byte*>(runner.result(result.location)), result.bytes);
  }
  gpu.record(done_, stream_.stream);
  gpu.wait(done_);
  for (const Result& result : results_) gpu.reads(result.pinned.get(), result.bytes);
}

const float* GpuResults::at(const Location& location) const {
  const auto found =
      std::find_if(results_.begin(), results_.end(), [&](const Result& r) { return r.location == location; });
  return found == results_.end() ? nullptr : found->pinned.as<const float>();
}

}  // namespace lockstep::exec
