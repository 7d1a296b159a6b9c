#include "optim/gpu_updater.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "graph/weight_order.hpp"
#include "lockstep/error.hpp"

namespace lockstep::optim {

namespace {

using exec::GpuTensors;

constexpr std::int64_t kPart = GpuTensors::kPart;

/// Calls set(part, its first element within the tensor, its number of elements) for each part of tensor `index`.
template <class Part, class Set>
void for_parts(std::vector<Part>& parts, const GpuTensors& block, std::size_t index, std::int64_t elements,
               const Set& set) {
  for (std::int64_t at = 0; at < elements; at += kPart) {
    Part& part = parts[static_cast<std::size_t>((block.start(index) + at) / kPart)];
    part.elements = static_cast<std::int32_t>(std::min(kPart, elements - at));
    set(part, at);
  }
}

}  // namespace

GpuUpdater::GpuUpdater(const UpdaterSetup& setup, device::Gpu& gpu, comm::GpuAllReduce& reducer,
                       std::unique_ptr<const UpdateKernels> kernels)
    : Updater(setup), gpu_(gpu), reducer_(reducer), kernels_(std::move(kernels)), done_(gpu.make_event()) {
  if (!kernels_->has_optimizer(optimizer_.name)) {
    throw Error(ExitCode::configuration, "job.optimizer: expected an optimizer that GPUs can compute, found '" +
                                             optimizer_.name + "'; set device: cpu");
  }
}

GpuUpdater::~GpuUpdater() {
  try {
    gpu_.make_current();
    gpu_.wait(done_);
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch): the GPU is lost, and its memory with it
  }
}

std::vector<exec::MemoryNeed> GpuUpdater::memory_needs(const Model& model) const {
  const std::size_t each = GpuTensors::bytes(model.parameters);
  auto needs = exec::GpuParameters::needs(graph_, model.parameters, model.states);
  needs.push_back({"gradient", each});
  if (other_parts_) needs.push_back({"sums of other parts", GpuOtherParts::bytes(*other_parts_)});
  if (!model.optimizer.empty()) needs.push_back({"optimizer", each, static_cast<int>(model.optimizer.size())});
  return needs;
}

void GpuUpdater::begin(const Model& model) {
  gpu_.make_current();
  parameters_ = std::make_shared<exec::GpuParameters>(gpu_, graph_, model.parameters, model.states);
  const std::vector<bool> channels_last = kept_channels_last(graph_);
  optimizer_state_.clear();
  for (const exec::TensorBlock& state : model.optimizer) {
    optimizer_state_.push_back(std::make_unique<GpuTensors>(gpu_, parameters_->stream(), state, channels_last));
    optimizer_state_.back()->upload(state);
  }
  device_gradient_ = std::make_unique<GpuTensors>(gpu_, parameters_->stream(), model.parameters, channels_last);
}

void GpuUpdater::fetch(Model& model) {
  parameters_->download(model.parameters, model.states);
  for (std::size_t s = 0; s < optimizer_state_.size(); ++s) optimizer_state_[s]->download(model.optimizer[s]);
}

const exec::TensorBlock& GpuUpdater::gradient() {
  if (!gradient_) gradient_ = make_state();
  device_gradient_->download(*gradient_);
  return *gradient_;
}

device::GpuBlock GpuUpdater::table(std::span<const std::byte> bytes) {
  const device::PinnedBlock pinned(gpu_, bytes.size());
  device::GpuBlock block(gpu_, bytes.size());
  if (bytes.empty()) return block;
  gpu_.fill(pinned.get(), bytes.data(), bytes.size());
  gpu_.copy_in(parameters_->stream(), block.get(), pinned.get(), bytes.size());
  gpu_.record(done_, parameters_->stream());
  gpu_.wait(done_);
  return block;
}

const float* GpuUpdater::sum_of(const Use& use) const {
  if (!use.own) return gpu_other_parts_->sum(use.number);
  const comm::GradientBuckets::Slot& place = buckets_.slots[use.number];
  return reducer_.reduced(place.bucket).data() + place.offset;
}

std::vector<UpdatePart> GpuUpdater::update_parts(std::vector<const float*>& uses) const {
  const GpuTensors& block = parameters_->parameters();
  std::vector<UpdatePart> parts(static_cast<std::size_t>(block.elements() / kPart));
  for (std::size_t p = 0; p < uses_.size(); ++p) {
    for_parts(parts, block, p, graph_.at(graph_.parameters[p]).spec.elements(), [&](UpdatePart& part, auto at) {
      part.use = std::ssize(uses);
      part.uses = static_cast<std::int32_t>(uses_[p].size());
      part.decay = decays(p);
      if (const exec::LowPrecisionWeights& copies = parameters_->copies(); copies.at(p) != nullptr) {
        part.low_precision = copies.type(p);
        part.copy = reinterpret_cast<std::uint16_t*>(copies.at(p)) + at;
      }
      for (const Use& use : uses_[p]) uses.push_back(sum_of(use) + at);
    });
  }
  return parts;
}

std::vector<StatePart> GpuUpdater::state_parts() const {
  const GpuTensors& block = parameters_->states();
  std::vector<StatePart> parts(static_cast<std::size_t>(block.elements() / kPart));
  for (std::size_t i = 0; i < program_.slots.size(); ++i) {
    const Slot& slot = program_.slots[i];
    if (slot.kind != Slot::Kind::statistic) continue;
    const comm::GradientBuckets::Slot& place = buckets_.slots[i];
    const auto target = static_cast<std::size_t>(slot.target);
    for_parts(parts, block, target, slot.elements, [&](StatePart& part, auto at) {
      part.sum = reducer_.reduced(place.bucket).data() + place.offset + at;
      part.momentum = static_cast<float>(graph_.at(graph_.states[target]).momentum);
    });
  }
  return parts;
}

std::vector<NormChunk> GpuUpdater::norm_chunks() const {
  std::vector<NormChunk> chunks;
  for (const Chunk& chunk : chunks_) {
    const GpuTensors& block = parameters_->parameters();
    chunks.push_back({block.start(chunk.parameter), chunk.first, chunk.elements, block.order(chunk.parameter)});
  }
  return chunks;
}

void GpuUpdater::make_tables() {
  if (other_parts_) {
    gpu_other_parts_.emplace(*other_parts_, program_, buckets_, gpu_, parameters_->stream(), reducer_, chunks_.size());
  }
  std::vector<const float*> uses;
  const auto parts = update_parts(uses);
  const auto states = state_parts();
  const auto chunks = norm_chunks();
  parts_ = table(std::as_bytes(std::span(parts)));
  uses_table_ = table(std::as_bytes(std::span(uses)));
  state_parts_ = table(std::as_bytes(std::span(states)));
  if (clip_norm_ > 0 || scales_loss_) {
    verdict_ = device::GpuBlock(gpu_, sizeof(Verdict));
    verdict_on_host_ = device::PinnedBlock(gpu_, sizeof(Verdict));
  }
  if (clip_norm_ <= 0) return;
  chunk_table_ = table(std::as_bytes(std::span(chunks)));
  lanes_ = device::GpuBlock(gpu_, chunks_.size() * SquaresFunctor::kLanes * sizeof(double));
  squares_ = device::GpuBlock(gpu_, chunks_.size() * sizeof(double));
  square_ = device::GpuBlock(gpu_, sizeof(double));
  square_levels_ = device::GpuBlock(gpu_, device::row_sums_bytes<double>(all_chunks(), 1));
}

UpdateResult GpuUpdater::update(Model& /*model*/, double count, const UpdateScalars& scalars) {
  gpu_.make_current();
  if (parts_.get() == nullptr) make_tables();
  const device::Gpu::Stream stream = parameters_->stream();
  const auto step = static_cast<std::uint64_t>(scalars.step);
  gpu_.enter(stream, step, "update");
  GpuStream* const kernel_stream = gpu_.kernel_stream(stream);
  gpu_.wait(stream, reducer_.whole());
  if (gpu_other_parts_) gpu_other_parts_->exchange(step);
  auto* const overflow = scales_loss_ ? &verdict_.as<Verdict>()->overflow : nullptr;
  if (scales_loss_) gpu_.clear(stream, verdict_.get(), sizeof(Verdict));
  kernels_->launch(kernel_stream, device_gradient_->elements(),
                   GatherFunctor{uses_table_.as<const float*>(), parts_.as<UpdatePart>(), device_gradient_->data(),
                                 static_cast<float>(count * scalars.loss_scale), overflow});
  if (gpu_other_parts_ && scales_loss_) gpu_other_parts_->spread(overflow, step);
  if (clip_norm_ > 0) launch_clipping(kernel_stream, step);
  launch_optimizer(kernel_stream, scalars);
  kernels_->launch(
      kernel_stream, parameters_->states().elements(),
      BlendFunctor{parameters_->states().data(), state_parts_.as<StatePart>(), static_cast<float>(shards_), overflow});
  reducer_.release(stream);
  parameters_->record_change();
  gpu_.record(done_, stream);
  return clip_norm_ > 0 || scales_loss_ ? read_verdict() : UpdateResult{};
}

void GpuUpdater::launch_clipping(GpuStream* stream, std::uint64_t step) {
  auto* const squares = squares_.as<double>();
  kernels_->launch(
      stream, std::ssize(chunks_),
      SquaresFunctor{device_gradient_->data(), chunk_table_.as<NormChunk>(), lanes_.as<double>(), squares});
  const auto level = [&](const double* from, const device::RowBlocks& blocks, double* to) {
    kernels_->launch(stream, blocks.count(), SumSquaresFunctor{{from, 1}, blocks, 1, to});
  };
  const double* const of_chunks = gpu_other_parts_ ? gpu_other_parts_->gather(squares, step) : squares;
  auto* const square = square_.as<double>();
  device::for_levels_of(of_chunks, all_chunks(), 1, square, square_levels_.as<double>(), level);
  kernels_->launch(stream, 1, ClipFunctor{square, clip_norm_, verdict_.as<Verdict>()});
}

void GpuUpdater::launch_optimizer(GpuStream* stream, const UpdateScalars& scalars) {
  UpdateOperands of{.parts = parts_.as<UpdatePart>(),
                    .parameter = parameters_->parameters().data(),
                    .gradient = device_gradient_->data(),
                    .states = {},
                    .state_count = static_cast<std::int32_t>(optimizer_state_.size()),
                    .clip = clip_norm_ > 0 ? verdict_.as<Verdict>() : nullptr,
                    .overflow = scales_loss_ ? &verdict_.as<Verdict>()->overflow : nullptr};
  for (std::size_t s = 0; s < optimizer_state_.size(); ++s) of.states[s] = optimizer_state_[s]->data();
  kernels_->launch_optimizer(stream, device_gradient_->elements(), of, optimizer_.name, settings_,
                             {scalars.learning_rate, scalars.update});
}

UpdateResult GpuUpdater::read_verdict() {
  const device::Gpu::Stream stream = parameters_->stream();
  gpu_.copy_out(stream, verdict_on_host_.get(), verdict_.get(), sizeof(Verdict));
  gpu_.record(done_, stream);
  gpu_.wait(done_);
  gpu_.reads(verdict_on_host_.get(), sizeof(Verdict));
  Verdict verdict;
  std::memcpy(&verdict, verdict_on_host_.get(), sizeof(verdict));
  if (scales_loss_ && verdict.overflow != 0) return {.norm = {}, .skipped = true};
  return {.norm = clip_norm_ > 0 ? std::optional(verdict.norm) : std::nullopt};
}

}  // namespace lockstep::optim
