#include "exec/gpu_part_micro_batch.hpp"

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

GpuPartMicroBatch::Arriving::Arriving(device::Gpu& gpu, const std::vector<PartLinks::Link>& links) {
  for (const PartLinks::Link& link : links) {
    bytes.push_back(link.bytes);
    pinned.emplace_back(gpu, link.bytes);
    at.push_back(memory.emplace_back(gpu, link.bytes).get());
  }
}

GpuPartMicroBatch::GpuPartMicroBatch(const ProgramSetup& setup, std::shared_ptr<GpuWorkerStream> stream,
                                     MicroBatchRunner& runner)
    : stream_(std::move(stream)),
      gpu_(stream_->gpu),
      runner_(runner),
      arena_(gpu_, MicroBatchRunner::arena_bytes(setup.program)),
      values_(gpu_, setup.part->links.received),
      gradients_(gpu_, setup.part->links.arrivals),
      copied_(gpu_.make_event()),
      parameters_(setup.program),
      inputs_(setup.graph, *stream_, nullptr),
      results_(setup, *stream_) {
  const PartLinks& links = setup.part->links;
  for (std::size_t i = 0; i < links.sent.size(); ++i) {
    if (!links.sent[i].empty()) add_leaving(setup.program.sent[i], links.sent[i].front().bytes);
  }
  for (std::size_t i = 0; i < setup.program.received_gradients.size(); ++i) {
    const std::vector<Location>& terms = setup.program.received_gradients[i];
    for (std::size_t t = 0; t < terms.size(); ++t) add_leaving(terms[t], links.gradients[i][t].bytes);
  }
}

// A location that forward and backward share needs one block: it has been sent before it is written again.
void GpuPartMicroBatch::add_leaving(const Location& location, std::size_t bytes) {
  if (find_leaving(location, bytes) == leaving_.end()) {
    leaving_.push_back({location, bytes, device::PinnedBlock(gpu_, bytes)});
  }
}

std::vector<GpuPartMicroBatch::Leaving>::const_iterator GpuPartMicroBatch::find_leaving(const Location& location,
                                                                                        std::size_t bytes) const {
  return std::find_if(leaving_.begin(), leaving_.end(),
                      [&](const Leaving& one) { return one.location == location && one.bytes == bytes; });
}

std::size_t GpuPartMicroBatch::bytes(const ProgramSetup& setup) {
  return MicroBatchRunner::arena_bytes(setup.program) + bytes_of_links(setup.part->links.received) +
         bytes_of_links(setup.part->links.arrivals);
}

std::byte* GpuPartMicroBatch::message(FromParts what, std::size_t entry) {
  const Arriving& all = arriving(what);
  gpu_.writes(all.pinned[entry].get(), all.bytes[entry]);
  return all.pinned[entry].get();
}

void GpuPartMicroBatch::begin(const MicroBatchCall& call) {
  LOCKSTEP_CHECK(runner_.kernels().scales_loss() || call.gradients == nullptr || call.gradients->loss_scale == 1,
                 "a GPU scales the loss of float16 only");
  gpu_.make_current();
  ranges_ = call.trace == nullptr ? nullptr : call.trace->ranges();
  inputs_.put(call);
  gpu_.wait(stream_->stream, call.model.changed);
}

void GpuPartMicroBatch::begin_wave(const MicroBatchCall& call, int wave) {
  gathers_ = gathers_of(call.model);
  parameters_.begin({gathers_, wave, call.context.step, call.trace, call.track}, call.model);
}

void GpuPartMicroBatch::abandon() noexcept {
  if (gathers_ != nullptr) gathers_->abandon(stream_->stream);
}

void GpuPartMicroBatch::received(FromParts what, std::size_t entry) {
  const Arriving& all = arriving(what);
  gpu_.copy_in(stream_->stream, all.memory[entry].get(), all.pinned[entry].get(), all.bytes[entry]);
}

void GpuPartMicroBatch::bind() {
  runner_.mark_ops(ranges_);
  runner_.begin(arena_.get());
}

MicroBatchOperands GpuPartMicroBatch::operands(const MicroBatchCall& call) const {
  return {.inputs = inputs_.tensors(),
          .model = gathers_ != nullptr ? parameters_.view() : call.model,
          .context = inputs_.context(),
          .step = call.context.step,
          .loss_scale = runner_.kernels().scales_loss() ? inputs_.loss_scale() : nullptr,
          .received = values_.at,
          .arrived = gradients_.at};
}

const void* GpuPartMicroBatch::made(const Location& location, std::size_t bytes, const MicroBatchCall& call) {
  const auto found = find_leaving(location, bytes);
  LOCKSTEP_CHECK(found != leaving_.end(), "a part sends what its links say");
  const auto* const memory = static_cast<const std::byte*>(runner_.at(location, operands(call)));
  gpu_.copy_out(stream_->stream, found->pinned.get(), memory, bytes);
  gpu_.record(copied_, stream_->stream);
  gpu_.wait(copied_);
  gpu_.reads(found->pinned.get(), bytes);
  return found->pinned.get();
}

void GpuPartMicroBatch::finish() {
  inputs_.release();
  results_.take(runner_);
}

}  // namespace lockstep::exec
