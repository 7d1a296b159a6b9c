// HostGpu: a Gpu whose memory is the host's and whose work is done at once, by the calling thread. For whole jobs on
// machines without a GPU; it cannot detect wrong order (tests/device/fake_gpu.hpp does). A stream can be made to look
// as if its work did not end.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "device/gpu/element_kernels.hpp"
#include "device/gpu/gpu.hpp"
#include "device/stalls.hpp"

namespace lockstep::device {

class HostGpu : public Gpu {
 public:
  void make_current() override {}
  Stream make_stream() override { return Stream{streams_++}; }
  Event make_event() override { return Event{events_++}; }
  void record(Event event, Stream stream) override { stalls_.record(event, stream); }
  void wait(Stream stream, Event event) override { stalls_.wait(stream, event); }
  void wait(Event event) override {
    while (!done(event)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  bool done(Event event) override { return stalls_.done(event); }
  /// Work enqueued on the stream from now on does not seem to end, until resume().
  void stall(Stream stream) { stalls_.stall(stream); }
  void resume() { stalls_.resume(); }
  std::byte* allocate(std::size_t bytes) override {
    constexpr std::size_t kAlignment = 256;
    return static_cast<std::byte*>(std::aligned_alloc(kAlignment, (bytes / kAlignment + 1) * kAlignment));
  }
  void free(std::byte* memory) override { std::free(memory); }
  std::byte* allocate_pinned(std::size_t bytes) override { return allocate(bytes); }
  void free_pinned(std::byte* memory) override { free(memory); }
  void fill(std::byte* pinned, const std::byte* from, std::size_t bytes) override {
    if (bytes > 0) std::memcpy(pinned, from, bytes);  // `from` may be null then
  }
  void copy_in(Stream /*stream*/, std::byte* device, const std::byte* pinned, std::size_t bytes) override {
    std::memcpy(device, pinned, bytes);
  }
  void copy_out(Stream /*stream*/, std::byte* pinned, const std::byte* device, std::size_t bytes) override {
    std::memcpy(pinned, device, bytes);
  }
  void copy(Stream /*stream*/, std::byte* to, const std::byte* from, std::size_t bytes) override {
    std::memcpy(to, from, bytes);
  }
  void clear(Stream /*stream*/, std::byte* device, std::size_t bytes) override { std::memset(device, 0, bytes); }
  GpuStream* kernel_stream(Stream /*stream*/) override { return nullptr; }
  void enter(Stream /*stream*/, std::uint64_t /*step*/, const std::string& /*op*/) override {}
  using Gpu::add;
  void add(Stream /*stream*/, DType dtype, const void* left, const void* right, void* out, std::int64_t n) override {
    launch_add<HostGrid>(nullptr, dtype, left, right, out, n);
  }
  void cast(Stream /*stream*/, Cast cast, DType type, const void* from, void* to, std::int64_t n) override {
    launch_cast<HostGrid>(nullptr, cast, type, from, to, n);
  }
  void scale(Stream /*stream*/, float* values, const float* factors, std::int64_t n, std::int64_t columns) override {
    HostGrid::each(nullptr, n, ScaleRowsFunctor{values, factors, Divisor(columns)});
  }
  std::size_t free_memory() override {
    const char* given = std::getenv("STAND_IN_FREE");
    return given == nullptr ? std::size_t{8} << 30 : std::strtoull(given, nullptr, 10);
  }

 private:
  std::atomic<std::uint32_t> streams_ = 0;
  std::atomic<std::uintptr_t> events_ = 0;
  Stalls stalls_;
};

}  // namespace lockstep::device
