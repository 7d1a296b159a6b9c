#include "exec/gpu_worker.hpp"

#include <algorithm>

#include "lockstep/error.hpp"

namespace lockstep::exec {

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
      parameters_(program_),
      graphs_(graphs ? std::make_unique<GpuGraphs>(gpu_, stream_->stream) : nullptr),
      inputs_(setup.graph, *stream_, std::move(filler)),
      results_(setup, *stream_) {}

std::vector<const void*> GpuWorker::addresses(const ModelView& model, const std::byte* arena) const {
  std::vector<const void*> addresses = {arena, inputs_.context(), inputs_.loss_scale()};
  addresses.insert(addresses.end(), inputs_.tensors().begin(), inputs_.tensors().end());
  addresses.insert(addresses.end(), model.parameters.begin(), model.parameters.end());
  addresses.insert(addresses.end(), model.low_precision.begin(), model.low_precision.end());
  addresses.insert(addresses.end(), model.states.begin(), model.states.end());
  if (model.gathers != nullptr) gathers_of(model)->add_addresses(addresses);
  return addresses;
}

void GpuWorker::launch_program(const MicroBatchCall& call) {
  const MicroBatchOperands operands{.inputs = inputs_.tensors(),
                                    .model = call.model.gathers != nullptr ? parameters_.view() : call.model,
                                    .slots = gradients_.slots(),
                                    .context = inputs_.context(),
                                    .step = call.context.step,
                                    .loss_scale = runner_.kernels().scales_loss() ? inputs_.loss_scale() : nullptr};
  const device::Gpu::Stream stream = stream_->stream;
  TraceRanges* const ranges = call.trace == nullptr ? nullptr : call.trace->ranges();
  runner_.mark_ops(ranges);
  const bool in_graphs = graphs_ != nullptr && ranges == nullptr;  // with op ranges, each op is launched by itself to
                                                                   // be visible
  const std::byte* const arena = runner_.begin();
  if (in_graphs) graphs_->begin(addresses(call.model, arena));
  const std::size_t all = program_.instructions.size();
  for (std::size_t first = 0, last = 0; first < all; first = last) {
    last = std::min(gradients_.end_of_part(first), parameters_.end_of_part(first));
    parameters_.before(first, stream);
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
    parameters_.after(last - 1, stream);
  }
}

double GpuWorker::run(const MicroBatchCall& call) {
  LOCKSTEP_CHECK(runner_.kernels().scales_loss() || call.gradients == nullptr || call.gradients->loss_scale == 1,
                 "a GPU scales the loss of float16 only");
  gpu_.make_current();
  gradients_.begin(call);
  parameters_.begin({gathers_of(call.model), call.wave, call.context.step, call.trace, call.track}, call.model);
  inputs_.put(call);
  gpu_.wait(stream_->stream, call.model.changed);
  try {
    launch_program(call);
  } catch (...) {
    if (call.model.gathers != nullptr) gathers_of(call.model)->abandon(stream_->stream);
    throw;
  }
  inputs_.release();
  stream_->arena.used_by(stream_->stream);
  results_.take(runner_);
  return gradients_.seconds() + parameters_.seconds();
}

}  // namespace lockstep::exec
