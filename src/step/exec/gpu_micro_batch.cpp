#include "step/exec/gpu_micro_batch.hpp"

#include <algorithm>
#include <utility>

#include "lockstep/error.hpp"

namespace lockstep::exec {

namespace {

std::size_t bytes_of_links(const std::vector<PartLinks::Link>& links) {
  std::size_t sum = 0;
  for (const PartLinks::Link& link : links) sum += link.bytes;
  return sum;
}

}  // namespace

GpuMicroBatch::Arriving::Arriving(device::Gpu& gpu, const std::vector<PartLinks::Link>& links) {
  for (const PartLinks::Link& link : links) {
    bytes.push_back(link.bytes);
    pinned.emplace_back(gpu, link.bytes);
    at.push_back(memory.emplace_back(gpu, link.bytes).get());
  }
}

void GpuGraphs::begin(std::vector<const void*> addresses) {
  if (addresses == addresses_) return;
  recorded_.clear();
  addresses_ = std::move(addresses);
}

GpuGraphs::Recorded& GpuGraphs::at(std::size_t segment, std::span<const comm::GradientBuffer> buffers) {
  key_.assign(1, segment);
  for (const comm::GradientBuffer& buffer : buffers) {
    key_.push_back(reinterpret_cast<std::uintptr_t>(buffer.memory));
    key_.push_back(buffer.add ? 1 : 0);
  }
  return recorded_[key_];
}

GpuMicroBatch::GpuMicroBatch(const ProgramSetup& setup, std::shared_ptr<GpuWorkerStream> stream,
                             MicroBatchRunner& runner, bool graphs, std::shared_ptr<const InputFiller> filler)
    : stream_(std::move(stream)),
      gpu_(stream_->gpu),
      runner_(runner),
      arena_bytes_(MicroBatchRunner::arena_bytes(setup.program)),
      has_loss_(setup.graph.loss >= 0),
      values_(gpu_, setup.links().received),
      gradients_(gpu_, setup.links().arrivals),
      copied_(gpu_.make_event()),
      parameters_(setup.program),
      graphs_(graphs ? std::make_unique<GpuGraphs>(gpu_, stream_->stream) : nullptr),
      inputs_(setup.graph, *stream_, std::move(filler)),
      results_(setup, *stream_) {
  if (setup.part != nullptr) arena_ = device::GpuBlock(gpu_, arena_bytes_);
  bind();  // allocates what all programs share before the first step
  const PartLinks& links = setup.links();
  for (std::size_t i = 0; i < links.sent.size(); ++i) {
    if (!links.sent[i].empty()) add_leaving(setup.program.sent[i], links.sent[i].front().bytes);
  }
  for (std::size_t i = 0; i < setup.program.received_gradients.size(); ++i) {
    const std::vector<Location>& terms = setup.program.received_gradients[i];
    for (std::size_t t = 0; t < terms.size(); ++t) add_leaving(terms[t], links.gradients[i][t].bytes);
  }
}

// A location that forward and backward share needs one block: it has been sent before it is written again.
void GpuMicroBatch::add_leaving(const Location& location, std::size_t bytes) {
  if (find_leaving(location, bytes) == leaving_.end()) {
    leaving_.push_back({location, bytes, device::PinnedBlock(gpu_, bytes)});
  }
}

std::vector<GpuMicroBatch::Leaving>::const_iterator GpuMicroBatch::find_leaving(const Location& location,
                                                                                std::size_t bytes) const {
  return std::find_if(leaving_.begin(), leaving_.end(),
                      [&](const Leaving& one) { return one.location == location && one.bytes == bytes; });
}

std::size_t GpuMicroBatch::bytes(const ProgramSetup& setup) {
  return MicroBatchRunner::arena_bytes(setup.program) + bytes_of_links(setup.links().received) +
         bytes_of_links(setup.links().arrivals);
}

std::byte* GpuMicroBatch::message(FromParts what, std::size_t entry) {
  const Arriving& all = arriving(what);
  gpu_.writes(all.pinned[entry].get(), all.bytes[entry]);
  return all.pinned[entry].get();
}

void GpuMicroBatch::received(FromParts what, std::size_t entry) {
  const Arriving& all = arriving(what);
  gpu_.copy_in(stream_->stream, all.memory[entry].get(), all.pinned[entry].get(), all.bytes[entry]);
}

void GpuMicroBatch::begin(const MicroBatchCall& call) {
  LOCKSTEP_CHECK(
      !has_loss_ || runner_.kernels().scales_loss() || call.gradients == nullptr || call.gradients->loss_scale == 1,
      "a GPU scales the loss of float16 only");
  gpu_.make_current();
  ranges_ = call.trace == nullptr ? nullptr : call.trace->ranges();
  inputs_.put(call);
  gpu_.wait(stream_->stream, call.model.changed);
}

void GpuMicroBatch::begin_pass(const MicroBatchCall& call, int wave) {
  gathers_ = gathers_of(call.model);
  parameters_.begin({gathers_, wave, call.context.step, call.trace, call.track}, call.model);
  if (graphs_ != nullptr) graphs_->begin(addresses(call.model));
}

std::byte* GpuMicroBatch::arena() {
  return arena_.get() != nullptr ? arena_.get() : stream_->arena.reserve(arena_bytes_);
}

void GpuMicroBatch::bind() {
  runner_.mark_ops(ranges_);
  runner_.begin(arena());
}

std::vector<const void*> GpuMicroBatch::addresses(const ModelView& model) {
  std::vector<const void*> addresses = {arena(), inputs_.context(), inputs_.loss_scale()};
  const auto add = [&](const auto& list) { addresses.insert(addresses.end(), list.begin(), list.end()); };
  add(inputs_.tensors());
  add(model.parameters);
  add(model.low_precision);
  add(model.states);
  if (gathers_ != nullptr) gathers_->add_addresses(addresses);
  return addresses;
}

// With op ranges, each op is launched by itself to be visible.
void GpuMicroBatch::run(std::size_t first, std::size_t end, const MicroBatchOperands& operands,
                        std::span<const comm::GradientBuffer> buffers) {
  const auto launch = [&] {
    for (std::size_t i = first; i < end; ++i) runner_.run(i, operands);
  };
  if (graphs_ == nullptr || ranges_ != nullptr) return launch();
  const auto name = [&] { return runner_.label(first) + " ... " + runner_.label(end - 1); };
  graphs_->run(first, buffers, operands.step, launch, name);
}

void GpuMicroBatch::abandon() noexcept {
  if (gathers_ != nullptr) return gathers_->abandon(stream_->stream);
  try {  // without gathers, nothing that the stream waits for needs other ranks
    gpu_.record(copied_, stream_->stream);
    gpu_.wait(copied_);
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch): the GPU is lost, and its memory with it
  }
}

MicroBatchOperands GpuMicroBatch::operands(const MicroBatchCall& call) const {
  return {.inputs = inputs_.tensors(),
          .model = gathers_ != nullptr ? parameters_.view() : call.model,
          .context = inputs_.context(),
          .step = call.context.step,
          .loss_scale = runner_.kernels().scales_loss() ? inputs_.loss_scale() : nullptr,
          .received = values_.at,
          .arrived = gradients_.at};
}

const void* GpuMicroBatch::made(const Location& location, std::size_t bytes, const MicroBatchCall& call) {
  const auto found = find_leaving(location, bytes);
  LOCKSTEP_CHECK(found != leaving_.end(), "a part sends what its links say");
  const auto* const memory = static_cast<const std::byte*>(runner_.at(location, operands(call)));
  gpu_.copy_out(stream_->stream, found->pinned.get(), memory, bytes);
  gpu_.record(copied_, stream_->stream);
  gpu_.wait(copied_);
  gpu_.reads(found->pinned.get(), bytes);
  return found->pinned.get();
}

void GpuMicroBatch::finish() {
  inputs_.release();
  if (arena_.get() == nullptr) stream_->arena.used_by(stream_->stream);
  results_.take(runner_);
}

}  // namespace lockstep::exec
