#include "step/exec/gpu_gathers.hpp"

#include <algorithm>
#include <utility>

#include "core/spans.hpp"
#include "lockstep/error.hpp"

namespace lockstep::exec {

namespace {

using device::Gpu;

constexpr const char* kGatherName = "all-gather of parameters";
constexpr std::chrono::milliseconds kGatherLook{50};

/// A model that owns the memory of its parameters.
struct Trial {
  device::GpuBlock zeros;
  ModelView view;
};

}  // namespace

GpuGathers::GpuGathers(Gpu& gpu, comm::GpuAllReduce& reducer, GpuParameters& own, GatherLayout layout)
    : gpu_(gpu), reducer_(reducer), own_(own), layout_(std::move(layout)) {
  find_copies();
  reducer_.use_turns(this);
}

GpuGathers::~GpuGathers() {
  try {
    gpu_.make_current();
    reducer_.use_turns(nullptr);
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch): the GPU is lost, and its memory with it
  }
}

void GpuGathers::find_copies() {
  const GpuTensors& own = own_.parameters();
  for (const GatherLayout::Unit& unit : layout_.units()) {
    std::vector<Copy>& copies = copies_.emplace_back();
    for (const GatherLayout::Area& area : unit.areas) {
      for (const GpuTensors::Run& run : own.runs()) {
        if (run.tensor != area.parameter) continue;
        const auto first = (run.start - own.start(run.tensor)) * area.element_bytes;
        const auto* const tensor = area.low_precision ? own_.copies().at(area.parameter)
                                                      : reinterpret_cast<const std::byte*>(own.at(area.parameter));
        copies.push_back(
            {tensor + first, area.offset + run.extent.begin * area.element_bytes, run.elements() * area.element_bytes});
      }
    }
  }
}

std::vector<UnitUse> GpuGathers::prepare(const Program& program, int workers) {
  gpu_.make_current();
  slots_.resize(std::max(slots_.size(), layout_.slots(program)));
  std::vector<UnitUse> uses = layout_.uses(program, slots_.size());
  make_room(uses, workers);
  return uses;
}

// Memory only grows.
void GpuGathers::make_room(const std::vector<UnitUse>& uses, int workers) {
  const std::vector<std::size_t> bytes = GatherLayout::slot_bytes(layout_.units(), uses, slots_.size());
  for (std::size_t s = 0; s < slots_.size(); ++s) {
    Slot& slot = slots_[s];
    if (slot.read.empty()) slot.gathered = gpu_.make_event();
    while (slot.read.size() < static_cast<std::size_t>(workers)) slot.read.push_back(gpu_.make_event());
    if (slot.bytes >= bytes[s]) continue;
    slot.memory = {};  // frees it before the larger one is allocated
    slot.memory = device::GpuBlock(gpu_, bytes[s]);
    slot.bytes = bytes[s];
    gpu_.clear(own_.stream(), slot.memory.get(), bytes[s]);  // gaps are sent, too
  }
  own_.record_change();
}

void GpuGathers::begin(Round round, std::vector<int> before) {
  gpu_.make_current();
  make_room(*round.uses, round.workers);  // another program may have got more slots since
  int turns = 0;
  {
    const std::lock_guard lock(mutex_);
    round_ = std::move(round);
    first_turns_.clear();
    for (const GatherWave& wave : round_.waves) {
      first_turns_.push_back(turns);
      turns += static_cast<int>(wave.end - wave.first);
    }
    enqueued_ = 0;
    for (Slot& slot : slots_) {  // the host has waited for all micro-batches of the round before
      slot.turn = -1;
      slot.readers = 0;
    }
  }
  reducer_.begin_turns(turns, std::move(before));
}

void GpuGathers::end() {
  reducer_.end_turns(kGatherName, "parameters");
}

// The last wave that begins there or before: a wave without gathers begins where the next one does.
int GpuGathers::wave_of(int turn) const {
  return static_cast<int>(std::upper_bound(first_turns_.begin(), first_turns_.end(), turn) - first_turns_.begin()) - 1;
}

// By the reducer's thread.

bool GpuGathers::ready(int turn) {
  const std::lock_guard lock(mutex_);
  const Slot& slot = slot_of(use_of(turn));
  return slot.turn < 0 || slot.readers == wave(wave_of(slot.turn)).readers;
}

void GpuGathers::enqueue(int turn, comm::GpuTransport& transport, Stream stream) {
  const std::size_t use = use_of(turn);
  const std::size_t number = (*round_.uses)[use].unit;
  Slot& slot = slot_of(use);
  if (turn == 0) gpu_.wait(stream, own_.changed());
  for (int reader = 0; reader < slot.readers; ++reader) gpu_.wait(stream, slot.read[reader]);
  for (const Copy& copy : copies_[number]) gpu_.copy(stream, slot.memory.get() + copy.offset, copy.from, copy.bytes);
  std::vector<comm::GpuTransport::Owned> slices;
  for (const auto& [owner, offset, bytes] : layout_.units()[number].slices) {
    slices.push_back({owner, reinterpret_cast<float*>(slot.memory.get() + offset),
                      static_cast<std::int64_t>(bytes / sizeof(float))});
  }
  transport.broadcast(slices, stream);
  gpu_.record(slot.gathered, stream);
  {
    const std::lock_guard lock(mutex_);
    slot.turn = turn;
    slot.readers = 0;
    enqueued_ = turn + 1;
  }
  enqueued_changed_.notify_all();
}

void GpuGathers::failed(std::exception_ptr error) noexcept {
  {
    const std::lock_guard lock(mutex_);
    error_ = std::move(error);
  }
  enqueued_changed_.notify_all();
}

// By workers.

void GpuGathers::wait_until_enqueued(int turn) {
  std::unique_lock lock(mutex_);
  while (enqueued_ <= turn) {
    if (error_) std::rethrow_exception(error_);
    if (round_.stop != nullptr && *round_.stop) {
      throw Error(ExitCode::infrastructure, "another worker of this rank has failed");
    }
    enqueued_changed_.wait_for(lock, kGatherLook);
  }
}

// The host waits, too, so that a rank that is gone is noticed, and a worker that waits for its micro-batch's end waits
// for its own GPU only.
void GpuGathers::acquire(int wave, std::size_t use, Stream stream, ModelView& view) {
  wait_until_enqueued(turn_of(wave, use));
  Slot& slot = slot_of(use);
  reducer_.wait_for(slot.gathered, kGatherName, "parameters");
  gpu_.wait(stream, slot.gathered);
  for (const GatherLayout::Area& area : layout_.unit((*round_.uses)[use].unit).areas) {
    const std::byte* const memory = slot.memory.get() + area.offset;
    if (area.low_precision) {
      view.low_precision[area.parameter] = memory;
    } else {
      view.parameters[area.parameter] = reinterpret_cast<const float*>(memory);
    }
  }
}

void GpuGathers::release(int wave, std::size_t use, Stream stream) {
  {
    const std::lock_guard lock(mutex_);
    Slot& slot = slot_of(use);
    LOCKSTEP_CHECK(slot.turn == turn_of(wave, use), "a unit stays until all its readers have released it");
    gpu_.record(slot.read[slot.readers++], stream);
  }
  reducer_.turn_may_be_ready();
}

void GpuGathers::abandon(Stream stream) noexcept {
  reducer_.abort();
  try {
    const Gpu::Event done = gpu_.make_event();
    gpu_.record(done, stream);
    gpu_.wait(done);
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch): the GPU is lost, and its memory with it
  }
}

void GpuGathers::add_addresses(std::vector<const void*>& addresses) const {
  for (const Slot& slot : slots_) addresses.push_back(slot.memory.get());
}

std::shared_ptr<const ModelView> GpuGathers::trial(const ModelView& model) const {
  gpu_.make_current();
  auto trial = std::make_shared<Trial>(Trial{device::GpuBlock(gpu_, layout_.max_area_bytes()), model});
  gpu_.clear(own_.stream(), trial->zeros.get(), layout_.max_area_bytes());
  own_.record_change();
  ModelView& view = trial->view;
  std::fill(view.parameters.begin(), view.parameters.end(), trial->zeros.as<float>());
  std::fill(view.low_precision.begin(), view.low_precision.end(), trial->zeros.get());
  view.gathers = nullptr;
  return {trial, &view};
}

void GatherReader::begin(const Call& call, const ModelView& model) {
  call_ = call;
  seconds_ = 0;
  held_.clear();
  if (call.gathers == nullptr) return;
  next_ = call.gathers->wave(call.wave).first;
  view_ = model;
  uses_ = &call.gathers->uses();
  begins_.assign(begins_.size(), false);
  ends_.assign(ends_.size(), false);
  for (const UnitUse& use : *uses_) {
    begins_[use.first] = true;
    ends_[use.last] = true;
  }
}

std::size_t GatherReader::end_of_segment(std::size_t first) const {
  const std::size_t all = ends_.size() - 1;
  if (call_.gathers == nullptr) return all;
  std::size_t i = first;
  while (i + 1 < all && !ends_[i] && !begins_[i + 1]) ++i;
  return i + 1;
}

void GatherReader::before(std::size_t first, Gpu::Stream stream) {
  if (call_.gathers == nullptr) return;
  for (; next_ < uses_->size() && (*uses_)[next_].first == first; ++next_) {
    const TraceScope span(call_.trace, kGatherName, call_.step, call_.track, (*uses_)[next_].unit);
    const auto start = Clock::now();
    call_.gathers->acquire(call_.wave, next_, stream, view_);
    seconds_ += seconds_since(start);
    held_.push_back(next_);
  }
}

void GatherReader::after(std::size_t last, Gpu::Stream stream) {
  if (call_.gathers == nullptr) return;
  std::erase_if(held_, [&](std::size_t use) {
    if ((*uses_)[use].last != last) return false;
    call_.gathers->release(call_.wave, use, stream);
    return true;
  });
}

}  // namespace lockstep::exec
