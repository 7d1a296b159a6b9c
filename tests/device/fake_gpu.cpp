#include "device/fake_gpu.hpp"

#include <algorithm>
#include <cstring>

#include "device/gpu/element_kernels.hpp"

namespace lockstep::device {

namespace {

constexpr std::byte kJunk{0xff};  // fresh memory holds NaNs

std::uintptr_t number(const std::byte* memory) {
  return reinterpret_cast<std::uintptr_t>(memory);
}

}  // namespace

void FakeGpu::join(Clock& into, const Clock& from) {
  into.resize(std::max(into.size(), from.size()));
  for (std::size_t i = 0; i < from.size(); ++i) into[i] = std::max(into[i], from[i]);
}

std::uint64_t FakeGpu::seen(const Clock& clock, std::size_t timeline) {
  return timeline < clock.size() ? clock[timeline] : 0;
}

std::string FakeGpu::name(std::size_t timeline) const {
  return timeline == 0 ? "the host" : "stream " + std::to_string(timeline - 1);
}

Gpu::Stream FakeGpu::make_stream() {
  const std::lock_guard lock(mutex_);
  clocks_.emplace_back();
  const auto stream = static_cast<Stream>(clocks_.size() - 2);
  kernel_streams_.push_back(std::make_unique<GpuStream>(GpuStream{*this, stream}));
  return stream;
}

GpuStream* FakeGpu::kernel_stream(Stream stream) {
  const std::lock_guard lock(mutex_);
  return kernel_streams_.at(static_cast<std::size_t>(stream)).get();
}

void FakeGpu::enter(Stream /*stream*/, std::uint64_t step, const std::string& op) {
  const std::lock_guard lock(mutex_);
  entered_ = "step " + std::to_string(step) + ": " + op;
}

void FakeGpu::add(Stream stream, DType dtype, const void* left, const void* right, void* out, std::int64_t n) {
  enqueue(stream, [=, this] {
    const auto bytes = static_cast<std::size_t>(n) * size_of(dtype);
    kernel_reads(stream, static_cast<const std::byte*>(left), bytes);
    kernel_reads(stream, static_cast<const std::byte*>(right), bytes);
    kernel_writes(stream, static_cast<std::byte*>(out), bytes);
    launch_add<HostGrid>(nullptr, dtype, left, right, out, n);
  });
}

void FakeGpu::scale(Stream stream, float* values, const float* factors, std::int64_t n, std::int64_t columns) {
  enqueue(stream, [=, this] {
    kernel_reads(stream, bytes_of(factors), static_cast<std::size_t>(n / columns) * sizeof(float));
    kernel_writes(stream, bytes_of(values), static_cast<std::size_t>(n) * sizeof(float));
    HostGrid::each(nullptr, n, ScaleRowsFunctor{values, factors, Divisor(columns)});
  });
}

void FakeGpu::cast(Stream stream, Cast cast, DType type, const void* from, void* to, std::int64_t n) {
  enqueue(stream, [=, this] {
    const auto bytes = [&](bool is_low_precision) {
      return static_cast<std::size_t>(n) * (is_low_precision ? size_of(type) : sizeof(float));
    };
    kernel_reads(stream, static_cast<const std::byte*>(from), bytes(cast == Cast::upcast));
    kernel_writes(stream, static_cast<std::byte*>(to), bytes(cast == Cast::downcast));
    launch_cast<HostGrid>(nullptr, cast, type, from, to, n);
  });
}

namespace {

class KeptKernels final : public GpuGraph {
 public:
  KeptKernels(std::vector<std::function<void()>> kernels, std::atomic<std::size_t>& launched)
      : kernels_(std::move(kernels)), launched_(launched) {}
  void launch() override {
    for (const auto& kernel : kernels_) kernel();
    ++launched_;
  }

 private:
  std::vector<std::function<void()>> kernels_;
  std::atomic<std::size_t>& launched_;
};

}  // namespace

std::unique_ptr<GpuGraph> FakeGpu::capture(Stream stream, const std::function<void()>& launch) {
  {
    const std::lock_guard lock(mutex_);
    captured_[stream].clear();
  }
  launch();
  const std::lock_guard lock(mutex_);
  auto kernels = captured_.extract(stream);
  return std::make_unique<KeptKernels>(std::move(kernels.mapped()), graphs_launched_);
}

void FakeGpu::enqueue(Stream stream, std::function<void()> kernel) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = captured_.find(stream); found != captured_.end()) {
      found->second.push_back(std::move(kernel));
      return;
    }
  }
  kernel();
}

void FakeGpu::only_outside_of_graphs(Stream stream, const std::string& what) {
  const std::lock_guard lock(mutex_);
  if (captured_.contains(stream)) throw Mistake(what + " in a graph of kernels");
}

Gpu::Event FakeGpu::make_event() {
  const std::lock_guard lock(mutex_);
  events_.emplace_back();
  return static_cast<Event>(events_.size() - 1);
}

void FakeGpu::record(Event event, Stream stream) {
  only_outside_of_graphs(stream, "an event");
  const std::lock_guard lock(mutex_);
  stalls_.record(event, stream);
  events_.at(static_cast<std::size_t>(event)) = clocks_.at(timeline(stream));
}

void FakeGpu::wait(Stream stream, Event event) {
  only_outside_of_graphs(stream, "a wait");
  const std::lock_guard lock(mutex_);
  stalls_.wait(stream, event);
  join(clocks_.at(timeline(stream)), events_.at(static_cast<std::size_t>(event)));
}

void FakeGpu::wait(Event event) {
  const std::lock_guard lock(mutex_);
  if (!stalls_.done(event)) throw Mistake("the host waits for what does not end");
  join(clocks_[0], events_.at(static_cast<std::size_t>(event)));
  forget();
}

void FakeGpu::forget() {
  for (auto& [address, block] : blocks_) {
    std::erase_if(block.accesses, [&](const Access& past) { return seen(clocks_[0], past.timeline) >= past.time; });
  }
}

bool FakeGpu::done(Event event) {
  const std::lock_guard lock(mutex_);
  if (!stalls_.done(event)) return false;
  wait(event);
  return true;
}

std::byte* FakeGpu::add_block(std::size_t bytes, bool pinned) {
  const std::lock_guard lock(mutex_);
  Block block;
  constexpr std::size_t kAlignment = 256;
  block.bytes.reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, (bytes / kAlignment + 1) * kAlignment)));
  std::fill_n(block.bytes.get(), bytes, kJunk);
  block.size = bytes;
  block.pinned = pinned;
  if (!pinned) max_bytes_ = std::max(max_bytes_, bytes_ += bytes);
  std::byte* memory = block.bytes.get();
  blocks_.emplace(number(memory), std::move(block));
  return memory;
}

void FakeGpu::remove(std::byte* memory, bool pinned) {
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(number(memory));
  if (found == blocks_.end() || found->second.pinned != pinned) throw Mistake("freed memory that is not there");
  for (const Access& past : found->second.accesses) {
    if (seen(clocks_[0], past.timeline) < past.time) {
      throw Mistake("freed memory that " + name(past.timeline) + " may still use");
    }
  }
  if (!pinned) bytes_ -= found->second.size;
  freed_.push_back(std::move(found->second.bytes));
  blocks_.erase(found);
}

void FakeGpu::advance(std::size_t timeline) {
  Clock& clock = clocks_.at(timeline);
  join(clock, clocks_[0]);
  clock.resize(std::max(clock.size(), timeline + 1));
  ++clock[timeline];
}

FakeGpu::Block& FakeGpu::check(const Use& use) {
  const std::string who = name(use.timeline);
  auto found = blocks_.upper_bound(number(use.memory));
  if (found == blocks_.begin()) throw Mistake(who + " uses memory that is not allocated");
  --found;
  Block& block = found->second;
  const std::size_t first = number(use.memory) - found->first, end = first + use.bytes;
  if (end > block.size) throw Mistake(who + " uses memory that is not allocated");
  if (block.pinned != use.pinned) throw Mistake(who + " takes the host's memory for the GPU's, or the reverse");
  const Clock& clock = clocks_.at(use.timeline);
  for (const Access& past : block.accesses) {
    const bool conflict = (past.writes || use.writes) && past.first < end && first < past.end;
    if (conflict && seen(clock, past.timeline) < past.time) {
      throw Mistake(who + (use.writes ? " writes" : " reads") + " without waiting for " + name(past.timeline) +
                    (past.writes ? ", which writes" : ", which reads"));
    }
  }
  return block;
}

void FakeGpu::access(std::initializer_list<Use> uses) {
  const std::lock_guard lock(mutex_);
  const std::size_t timeline = uses.begin()->timeline;
  advance(timeline);
  std::vector<Block*> blocks;
  for (const Use& use : uses) blocks.push_back(&check(use));
  auto block = blocks.begin();
  for (const Use& use : uses) {
    const std::size_t first = static_cast<std::size_t>(use.memory - (*block)->bytes.get());
    (*block++)->accesses.push_back({timeline, seen(clocks_[timeline], timeline), first, first + use.bytes, use.writes});
  }
}

void FakeGpu::fill(std::byte* pinned, const std::byte* from, std::size_t bytes) {
  access({{0, pinned, bytes, true, true}});
  std::memcpy(pinned, from, bytes);
}

void FakeGpu::copy_in(Stream stream, std::byte* device, const std::byte* pinned, std::size_t bytes) {
  only_outside_of_graphs(stream, "a copy");
  access({{timeline(stream), pinned, bytes, false, true}, {timeline(stream), device, bytes, true, false}});
  std::memcpy(device, pinned, bytes);
}

void FakeGpu::copy_out(Stream stream, std::byte* pinned, const std::byte* device, std::size_t bytes) {
  only_outside_of_graphs(stream, "a copy");
  access({{timeline(stream), device, bytes, false, false}, {timeline(stream), pinned, bytes, true, true}});
  std::memcpy(pinned, device, bytes);
}

void FakeGpu::copy(Stream stream, std::byte* to, const std::byte* from, std::size_t bytes) {
  only_outside_of_graphs(stream, "a copy");
  access({{timeline(stream), from, bytes, false, false}, {timeline(stream), to, bytes, true, false}});
  std::memcpy(to, from, bytes);
}

void FakeGpu::clear(Stream stream, std::byte* device, std::size_t bytes) {
  only_outside_of_graphs(stream, "a copy");
  kernel_writes(stream, device, bytes);
  std::memset(device, 0, bytes);
}

void FakeGpu::kernel_reads(Stream stream, const std::byte* device, std::size_t bytes) {
  only_outside_of_graphs(stream, "a kernel that was not enqueued");
  access({{timeline(stream), device, bytes, false, false}});
}

void FakeGpu::kernel_writes(Stream stream, std::byte* device, std::size_t bytes) {
  only_outside_of_graphs(stream, "a kernel that was not enqueued");
  access({{timeline(stream), device, bytes, true, false}});
}

void FakeGpu::reads(const std::byte* pinned, std::size_t bytes) {
  access({{0, pinned, bytes, false, true}});
}

void FakeGpu::writes(std::byte* pinned, std::size_t bytes) {
  access({{0, pinned, bytes, true, true}});
}

}  // namespace lockstep::device
