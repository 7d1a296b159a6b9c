#include "step/optim/gpu_updater.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "graph/weight_order.hpp"
#include "lockstep/error.hpp"
#include "step/optim/gpu_update_memory.hpp"
#include "step/optim/registry.hpp"

namespace lockstep::optim {

namespace {

using exec::GpuTensors;

constexpr std::int64_t kPart = GpuTensors::kPart;

/// Calls set(part, its first element within the tensor) for each part of a run.
template <class Part, class Set>
void for_parts(std::vector<Part>& parts, const GpuTensors::Run& run, const Set& set) {
  for (std::int64_t at = 0; at < run.elements(); at += kPart) {
    Part& part = parts[(run.start + at) / kPart];
    part.elements = static_cast<std::int32_t>(std::min(kPart, run.elements() - at));
    set(part, run.extent.begin + at);
  }
}

}  // namespace

GpuUpdater::GpuUpdater(const UpdaterSetup& setup, device::Gpu& gpu, comm::GpuAllReduce& reducer,
                       std::unique_ptr<const UpdateKernels> kernels)
    : Updater(setup), gpu_(gpu), reducer_(reducer), kernels_(std::move(kernels)), done_(gpu.make_event()) {
  if (!is_on_gpus(optimizer_.name)) {
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
  auto needs = needs_of_update({.graph = graph_,
                                .optimizer = optimizer_,
                                .states = states_,
                                .parameters = exec::kept_elements(model.parameters),
                                .updated = slices_ != nullptr ? slices_->own() : exec::kept_elements(model.parameters),
                                .is_divided = slices_ != nullptr,
                                .matrices = makers_.gpu_bytes(rank_, owned())});
  if (other_parts_) needs.push_back({"sums of other parts", GpuOtherParts::bytes(*other_parts_)});
  if (gathers_numbers()) needs.push_back({"numbers of other ranks", GpuChunkNumbers::bytes(all_chunks())});
  if (divides_parameters()) {
    needs.push_back({"gathered parameters", exec::GpuGathers::bytes(gather_layout(), program_)});
  }
  return needs;
}

void GpuUpdater::begin(const Model& model) {
  gpu_.make_current();
  gathers_.reset();
  parameters_ = std::make_shared<exec::GpuParameters>(gpu_, graph_, model.parameters, model.states);
  const std::vector<bool> channels_last = kept_channels_last(graph_);
  optimizer_state_.clear();
  for (const exec::TensorBlock& state : model.optimizer) {
    std::vector<bool> of_state = channels_last;
    for (std::size_t p = 0; p < of_state.size(); ++p) {
      of_state[p] = channels_last[p] && state.shape(p) == shape_of(p);
    }
    optimizer_state_.push_back(std::make_unique<GpuTensors>(gpu_, parameters_->stream(), state, of_state));
    optimizer_state_.back()->upload(state);
  }
  const auto make_gradient = [&](const exec::TensorBlock& like) {
    device_gradient_ = std::make_unique<GpuTensors>(gpu_, parameters_->stream(), like, channels_last);
  };
  if (slices_ == nullptr) return make_gradient(model.parameters);
  make_gradient(make_state());
  if (!divides_parameters()) {
    owned_runs_ = owned_runs();
    return;
  }
  gathers_ = std::make_unique<exec::GpuGathers>(gpu_, reducer_, *parameters_, gather_layout());
  parameters_->gather_with(*gathers_);
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

const float* GpuUpdater::sum_of(const Use& use, std::int64_t element) const {
  if (!use.own) return gpu_other_parts_->sum(use.number) + element;
  const comm::GradientBuckets::Slot& place = buckets_.slots[use.number];
  return reducer_.sum_at(place.bucket, place.offset + element);
}

std::vector<UpdatePart> GpuUpdater::update_parts(std::int64_t update, std::vector<const float*>& uses) const {
  const exec::LowPrecisionWeights& copies = parameters_->copies();
  std::vector<UpdatePart> parts(device_gradient_->elements() / kPart);
  for (const GpuTensors::Run& run : device_gradient_->runs()) {
    const std::size_t p = run.tensor;
    if (uses_[p].empty()) continue;  // frozen
    for_parts(parts, run, [&](UpdatePart& part, std::int64_t at) {
      const std::int64_t offset = parameters_->parameters().offset(p, at);
      part.parameter = parameters_->parameters().data() + offset;
      part.use = std::ssize(uses);
      part.decay = groups_.decays(p);
      part.group = is_matrix(p) ? kNoGroup : static_cast<std::int32_t>(groups_.of(p));
      part.tensor = p;
      if (copies.at(p) != nullptr) {
        part.low_precision = copies.type(p);
        part.copy = reinterpret_cast<std::uint16_t*>(copies.at(p)) + offset - parameters_->parameters().start(p);
      }
      if (is_frozen(p, update)) return;  // its gradient stays 0, as it was made
      part.uses = uses_[p].size();
      for (const Use& use : uses_[p]) uses.push_back(sum_of(use, at));
    });
  }
  return parts;
}

std::vector<StatePart> GpuUpdater::state_parts() const {
  const GpuTensors& block = parameters_->states();
  std::vector<StatePart> parts(block.elements() / kPart);
  for (std::size_t i = 0; i < program_.slots.size(); ++i) {
    const Slot& slot = program_.slots[i];
    if (slot.kind != Slot::Kind::statistic) continue;
    const comm::GradientBuckets::Slot& place = buckets_.slots[i];
    const std::size_t target = slot.target;
    const GpuTensors::Run run{target, {0, slot.elements}, block.start(target)};
    for_parts(parts, run, [&](StatePart& part, std::int64_t at) {
      part.sum = reducer_.sum_at(place.bucket, place.offset + at);
      part.momentum = graph_.at(graph_.states[target]).momentum;
    });
  }
  return parts;
}

// A chunk lies in one run, since slices are cut at chunks. It is numbered from its tensor's first element, which may
// not be here.
std::vector<NormChunk> GpuUpdater::norm_chunks() const {
  const GpuTensors& block = *device_gradient_;
  std::vector<NormChunk> chunks;
  auto run = block.runs().begin();
  for (const std::size_t number : own_chunks_) {
    const Chunk& chunk = chunks_[number];
    while (run->tensor != chunk.parameter || run->extent.end <= chunk.first) ++run;
    chunks.push_back(
        {run->start - run->extent.begin, chunk.first, chunk.elements, parameters_->parameters().order(run->tensor)});
  }
  return chunks;
}

// All ranks have the same parameters' block. Runs that are adjacent there and have one owner are one, with the gaps
// between them.
std::vector<comm::GpuTransport::Owned> GpuUpdater::owned_runs() const {
  const GpuTensors& block = parameters_->parameters();
  std::vector<comm::GpuTransport::Owned> runs;
  for (std::size_t p = 0; p < uses_.size(); ++p) {
    if (uses_[p].empty()) continue;  // frozen
    for (const auto& [extent, owner] : slices_->owned()[p]) {
      float* const first = block.at(p) + extent.begin;
      if (!runs.empty() && runs.back().owner == owner) {
        comm::GpuTransport::Owned& last = runs.back();
        const std::int64_t next = GpuTensors::parts_of(last.count) * kPart;
        if (last.memory + next == first) {
          last.count = next + extent.end - extent.begin;
          continue;
        }
      }
      runs.push_back({owner, first, extent.end - extent.begin});
    }
  }
  return runs;
}

void GpuUpdater::make_tables() {
  if (other_parts_) {
    gpu_other_parts_.emplace(*other_parts_, program_, buckets_, gpu_, parameters_->stream(), reducer_);
  }
  if (gathers_numbers()) {
    numbers_.emplace(gpu_, parameters_->stream(), GpuChunkNumbers::Chunks{own_chunks_, chunks_.size(), all_chunks()},
                     [this](std::vector<double>& here, std::uint64_t step) { return gather_numbers(here, step); });
  }
  make_part_tables(std::numeric_limits<std::int64_t>::max());
  const auto states = state_parts();
  const auto chunks = norm_chunks();
  state_parts_ = table(std::as_bytes(std::span(states)));
  if (optimizer_.trust_ratio) make_trust_tables();
  if (is_adafactor()) {
    make_adafactor_tables(chunks);
  } else {
    if (trust_) make_measure_tables(chunks);
    if (!makers_.matrices().empty()) make_matrix_tables(chunks);
  }
  if (clip_norm_ > 0 || scales_loss_) {
    verdict_ = device::GpuBlock(gpu_, sizeof(Verdict));
    verdict_on_host_ = device::PinnedBlock(gpu_, sizeof(Verdict));
  }
  if (clip_norm_ <= 0) return;
  chunk_table_ = table(std::as_bytes(std::span(chunks)));
  lanes_ = device::GpuBlock(gpu_, own_chunks_.size() * SquaresFunctor::kLanes * sizeof(double));
  squares_ = device::GpuBlock(gpu_, own_chunks_.size() * sizeof(double));
  square_ = device::GpuBlock(gpu_, sizeof(double));
  square_levels_ = device::GpuBlock(gpu_, device::row_sums_bytes<double>(static_cast<std::ptrdiff_t>(all_chunks()), 1));
}

void GpuUpdater::make_part_tables(std::int64_t update) {
  std::vector<const float*> uses;
  const auto parts = update_parts(update, uses);
  parts_ = table(std::as_bytes(std::span(parts)));
  uses_table_ = table(std::as_bytes(std::span(uses)));
  frozen_groups_ = groups_.count_frozen(update);
}

UpdateResult GpuUpdater::update(Model& /*model*/, double count, const UpdateScalars& scalars) {
  gpu_.make_current();
  if (parts_.get() == nullptr) make_tables();
  if (groups_.count_frozen(scalars.update) != frozen_groups_) make_part_tables(scalars.update);
  const device::Gpu::Stream stream = parameters_->stream();
  const std::uint64_t step = scalars.step;
  gpu_.enter(stream, step, "update");
  GpuStream* const kernel_stream = gpu_.kernel_stream(stream);
  gpu_.wait(stream, reducer_.whole());
  if (gpu_other_parts_) gpu_other_parts_->exchange(step);
  auto* const overflow = scales_loss_ ? &verdict_.as<Verdict>()->overflow : nullptr;
  if (scales_loss_) gpu_.clear(stream, verdict_.get(), sizeof(Verdict));
  kernels_->launch(kernel_stream, device_gradient_->elements(),
                   GatherPartsFunctor{uses_table_.as<const float*>(), parts_.as<UpdatePart>(), device_gradient_->data(),
                                      static_cast<float>(count * scalars.loss_scale), overflow});
  if (numbers_ && scales_loss_) numbers_->spread(overflow, step);
  if (clip_norm_ > 0) launch_clipping(kernel_stream, step);
  launch_optimizer(kernel_stream, scalars);
  kernels_->launch(kernel_stream, parameters_->states().elements(),
                   BlendFunctor{parameters_->states().data(), state_parts_.as<StatePart>(),
                                static_cast<float>(micro_batches_), overflow});
  reducer_.release(stream);
  parameters_->record_change();
  gpu_.record(done_, stream);
  const UpdateResult result = clip_norm_ > 0 || scales_loss_ ? read_verdict() : UpdateResult{};
  if (slices_ != nullptr && !gathers_ && !result.skipped) gather_parameters();
  return result;
}

void GpuUpdater::swap_average(Model& /*model*/, std::uint64_t step) {
  gpu_.make_current();
  if (parts_.get() == nullptr) make_tables();
  const device::Gpu::Stream stream = parameters_->stream();
  gpu_.enter(stream, step, "average");
  kernels_->launch(gpu_.kernel_stream(stream), device_gradient_->elements(),
                   SwapFunctor{parts_.as<UpdatePart>(), optimizer_state_.back()->data()});
  parameters_->record_change();
  gpu_.record(done_, stream);
  if (slices_ != nullptr && !gathers_) gather_parameters();
}

// The own elements' copies are made again with the others': a launch for each weight instead of one for each slice.
void GpuUpdater::gather_parameters() {
  const device::Gpu::Stream stream = parameters_->stream();
  reducer_.broadcast(owned_runs_, stream);
  for (std::size_t p = 0; p < uses_.size(); ++p) {
    const auto& owned = slices_->owned()[p];
    const bool all_own =
        std::all_of(owned.begin(), owned.end(), [&](const auto& of) { return of.owner == slices_->rank(); });
    if (uses_[p].empty() || all_own) continue;
    parameters_->copies().make(p, stream, parameters_->parameters().at(p),
                               graph_.at(graph_.parameters[p]).spec.elements());
  }
  parameters_->record_change();
  gpu_.record(done_, stream);
  reducer_.wait_for(done_, "all-gather of parameters", "parameters");
}

void GpuUpdater::launch_clipping(GpuStream* stream, std::uint64_t step) {
  auto* const squares = squares_.as<double>();
  kernels_->launch(
      stream, std::ssize(own_chunks_),
      SquaresFunctor{device_gradient_->data(), chunk_table_.as<NormChunk>(), lanes_.as<double>(), squares});
  const auto level = [&](const double* from, const device::RowBlocks& blocks, double* to) {
    kernels_->launch(stream, blocks.count(), SumSquaresFunctor{{from, 1}, blocks, 1, to});
  };
  const double* const of_chunks = numbers_ ? numbers_->gather(squares, step) : squares;
  auto* const square = square_.as<double>();
  device::for_levels_of(of_chunks, static_cast<std::ptrdiff_t>(all_chunks()), 1, square, square_levels_.as<double>(),
                        level);
  kernels_->launch(stream, 1, ClipFunctor{square, clip_norm_, verdict_.as<Verdict>()});
}

void GpuUpdater::launch_optimizer(GpuStream* stream, const UpdateScalars& scalars) {
  UpdateOperands of{.parts = parts_.as<UpdatePart>(),
                    .gradient = device_gradient_->data(),
                    .states = {},
                    .group = 0,
                    .state_count = static_cast<std::int32_t>(own_states_),
                    .clip = clip_norm_ > 0 ? verdict_.as<Verdict>() : nullptr,
                    .overflow = scales_loss_ ? &verdict_.as<Verdict>()->overflow : nullptr,
                    .trust = nullptr};
  for (std::size_t s = 0; s < own_states_; ++s) of.states[s] = optimizer_state_[s]->data();
  if (adafactor_) {
    launch_adafactor(stream, of, scalars);
  } else {
    launch_formula(stream, of, scalars);
  }
  if (scalars.average > 0) {
    kernels_->launch(stream, device_gradient_->elements(),
                     AverageFunctor{parts_.as<UpdatePart>(), optimizer_state_.back()->data(),
                                    static_cast<float>(scalars.average), of.overflow});
  }
}

void GpuUpdater::launch_formula(GpuStream* stream, UpdateOperands of, const UpdateScalars& scalars) {
  if (trust_) {
    launch_trust(stream, of, scalars);
    of.trust = trust_->ratios.as<float>();
    of.clip = nullptr;
  }
  if (matrices_) launch_matrices(stream, of, scalars);
  for_each_group(scalars, [&](std::int32_t group, const Attributes& settings, const UpdateStep& step) {
    of.group = group;
    kernels_->launch_optimizer(stream, device_gradient_->elements(), of, optimizer_.name, settings, step);
  });
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
