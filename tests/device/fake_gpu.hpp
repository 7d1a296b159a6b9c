// FakeGpu: a Gpu on the CPU that detects what a real one would leave to chance. Each access to memory is an entry with
// the clock of its timeline (a stream, or the host); events carry clocks from one timeline to another. Two accesses to
// one byte, one of them a write, must be ordered by the clocks, whatever order they happened to run in (Lamport, 1978;
// Fidge and Mattern, 1988). So a missing wait fails the test every time, not occasionally.
//
// Mistakes throw FakeGpu::Mistake, and copies really copy. Thread-safe; for the clocks all threads are one host.
#pragma once

#include <atomic>
#include <cstdlib>
#include <initializer_list>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "device/gpu/gpu.hpp"
#include "device/stalls.hpp"

namespace lockstep {

/// Passed to a test's kernel, which reports its accesses to it.
class GpuStream {
 public:
  device::Gpu& gpu;
  device::Gpu::Stream handle;
};

namespace device {

template <class Element>
std::byte* bytes_of(const Element* memory) {
  return reinterpret_cast<std::byte*>(const_cast<Element*>(memory));
}

class FakeGpu final : public Gpu {
 public:
  struct Mistake : std::logic_error {
    using std::logic_error::logic_error;
  };

  FakeGpu() : clocks_(1) {}

  void make_current() override {}
  [[nodiscard]] Stream make_stream() override;
  [[nodiscard]] Event make_event() override;
  void record(Event event, Stream stream) override;
  void wait(Stream stream, Event event) override;
  void wait(Event event) override;
  /// As if the GPU were always fast: true, and the host has waited. If a stream is stalled: false.
  [[nodiscard]] bool done(Event event) override;
  [[nodiscard]] std::byte* allocate(std::size_t bytes) override { return add_block(bytes, false); }
  void free(std::byte* memory) override { remove(memory, false); }
  [[nodiscard]] std::byte* allocate_pinned(std::size_t bytes) override { return add_block(bytes, true); }
  void free_pinned(std::byte* memory) override { remove(memory, true); }
  void fill(std::byte* pinned, const std::byte* from, std::size_t bytes) override;
  void copy_in(Stream stream, std::byte* device, const std::byte* pinned, std::size_t bytes) override;
  void copy_out(Stream stream, std::byte* pinned, const std::byte* device, std::size_t bytes) override;
  void copy(Stream stream, std::byte* to, const std::byte* from, std::size_t bytes) override;
  void clear(Stream stream, std::byte* device, std::size_t bytes) override;
  void reads(const std::byte* pinned, std::size_t bytes) override;
  void writes(std::byte* pinned, std::size_t bytes) override;
  [[nodiscard]] GpuStream* kernel_stream(Stream stream) override;
  void enter(Stream stream, std::uint64_t step, const std::string& op) override;
  using Gpu::add;
  void add(Stream stream, DType dtype, const void* left, const void* right, void* out, std::int64_t n) override;
  void cast(Stream stream, Cast cast, DType type, const void* from, void* to, std::int64_t n) override;
  void scale(Stream stream, float* values, const float* factors, std::int64_t n, std::int64_t columns) override;
  /// What is enqueued meanwhile is stored, and done by each launch.
  [[nodiscard]] std::unique_ptr<GpuGraph> capture(Stream stream, const std::function<void()>& launch) override;
  [[nodiscard]] std::size_t free_memory() override { return free_memory_; }

  /// Sets what free_memory() returns from now on.
  void set_free_memory(std::size_t bytes) { free_memory_ = bytes; }
  /// Work enqueued on the stream from now on does not end, until resume(): a host that waited for it would wait
  /// forever, which is a mistake.
  void stall(Stream stream) { stalls_.stall(stream); }
  void resume() { stalls_.resume(); }
  /// The last argument of enter(), on any stream: "step 3: relu 'first'".
  [[nodiscard]] const std::string& entered() const { return entered_; }

  /// Runs the kernel now, or stores it if the stream is being captured.
  void enqueue(Stream stream, std::function<void()> kernel);
  [[nodiscard]] std::size_t graphs_launched() const { return graphs_launched_; }

  /// Checks an access like that of a kernel on the stream.
  void kernel_reads(Stream stream, const std::byte* device, std::size_t bytes);
  void kernel_writes(Stream stream, std::byte* device, std::size_t bytes);

  [[nodiscard]] std::size_t blocks_alive() const { return blocks_.size(); }
  /// The peak of what allocate() has given.
  [[nodiscard]] std::size_t max_bytes() const { return max_bytes_; }

 private:
  using Clock = std::vector<std::uint64_t>;  ///< by timeline: the host is 0, stream s is s + 1
  struct Access {
    std::size_t timeline;
    std::uint64_t time;
    std::size_t first, end;  ///< range in the block
    bool writes;
  };
  struct Free {
    void operator()(std::byte* bytes) const { std::free(bytes); }
  };
  using Bytes = std::unique_ptr<std::byte[], Free>;
  struct Block {
    Bytes bytes;
    std::size_t size = 0;
    bool pinned = false;
    std::vector<Access> accesses;
  };

  [[nodiscard]] static std::size_t timeline(Stream stream) { return static_cast<std::size_t>(stream) + 1; }
  static void join(Clock& into, const Clock& from);
  [[nodiscard]] static std::uint64_t seen(const Clock& clock, std::size_t timeline);
  [[nodiscard]] std::string name(std::size_t timeline) const;
  std::byte* add_block(std::size_t bytes, bool pinned);
  void remove(std::byte* memory, bool pinned);
  /// Forgets accesses that the host has waited for: everything that follows is ordered after them.
  void forget();
  /// Starts a new entry of the timeline: what the host puts on a stream comes after everything that the host has seen.
  void advance(std::size_t timeline);
  /// The access of one entry. Errors are thrown before anything is stored.
  struct Use {
    std::size_t timeline;
    const std::byte* memory;
    std::size_t bytes;
    bool writes, pinned;
  };
  void access(std::initializer_list<Use> uses);
  [[nodiscard]] Block& check(const Use& use);
  /// Throws if the stream is being captured: `what` is not a kernel.
  void only_outside_of_graphs(Stream stream, const std::string& what);

  std::recursive_mutex mutex_;
  std::size_t free_memory_ = std::size_t{1} << 40;
  std::size_t bytes_ = 0, max_bytes_ = 0;
  std::string entered_;
  Stalls stalls_;
  std::map<Stream, std::vector<std::function<void()>>> captured_;  ///< by stream that is being captured
  std::atomic<std::size_t> graphs_launched_ = 0;
  std::vector<std::unique_ptr<GpuStream>> kernel_streams_;  ///< by stream
  std::vector<Clock> clocks_;                               ///< by timeline
  std::vector<Clock> events_;
  std::map<std::uintptr_t, Block> blocks_;
  std::vector<Bytes> freed_;  ///< kept, so that addresses are not reused
};

/// Reports an access of the kernel that is called with this stream.
template <class Element>
void kernel_reads(GpuStream* stream, const Element* memory, std::int64_t count) {
  if (count == 0) return;
  dynamic_cast<FakeGpu&>(stream->gpu)
      .kernel_reads(stream->handle, bytes_of(memory), static_cast<std::size_t>(count) * sizeof(Element));
}
template <class Element>
void kernel_writes(GpuStream* stream, Element* memory, std::int64_t count) {
  if (count == 0) return;
  dynamic_cast<FakeGpu&>(stream->gpu)
      .kernel_writes(stream->handle, bytes_of(memory), static_cast<std::size_t>(count) * sizeof(Element));
}

}  // namespace device
}  // namespace lockstep
