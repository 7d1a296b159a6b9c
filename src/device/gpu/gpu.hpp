// What host code asks of a GPU: memory, streams, events and copies. CudaGpu (in the module) does it; FakeGpu (in tests)
// does it on the CPU and checks what a GPU leaves unchecked: the order of accesses, and the life of memory.
//
// Work enqueued on one stream runs in that order; across streams, and for the host, only events order anything. What
// makes something may be called by any thread, but streams are made before the others are at work.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "device/cast.hpp"
#include "device/stream.hpp"
#include "lockstep/tensor.hpp"

namespace lockstep {

class GpuStream;  // of the CUDA module

namespace device {

/// Kernels that were enqueued on a stream once, and are launched again by one call: with the same arguments, whatever
/// stands in the memory by then. It does not outlive its Gpu.
class GpuGraph {
 public:
  GpuGraph() = default;
  GpuGraph(const GpuGraph&) = delete;
  GpuGraph& operator=(const GpuGraph&) = delete;
  virtual ~GpuGraph() = default;
  /// Enqueues them on that stream. Nothing may be running of it when it is destroyed.
  virtual void launch() = 0;
};

class Gpu {
 public:
  using Stream = device::Stream;
  using Event = device::Event;

  Gpu() = default;
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;
  virtual ~Gpu() = default;

  /// Each thread that calls anything else calls this first: the thread's GPU is this one from then on.
  virtual void make_current() = 0;

  /// They live as long as the Gpu.
  [[nodiscard]] virtual Stream make_stream() = 0;
  /// A stream for kernels, not only for copies: it has a kernel_stream().
  [[nodiscard]] virtual Stream make_kernel_stream() { return make_stream(); }
  [[nodiscard]] virtual Event make_event() = 0;

  /// The event stands for all that was enqueued on the stream so far, instead of what it stood for before.
  virtual void record(Event event, Stream stream) = 0;
  /// What is enqueued on the stream from here on runs after what the event stands for now; at once for a fresh event.
  virtual void wait(Stream stream, Event event) = 0;
  /// The calling thread waits.
  virtual void wait(Event event) = 0;
  /// Whether that wait would be over at once.
  [[nodiscard]] virtual bool done(Event event) = 0;

  /// 256-byte aligned, not cleared. Nothing may be using the memory when it is freed.
  [[nodiscard]] virtual std::byte* allocate(std::size_t bytes) = 0;
  virtual void free(std::byte* memory) = 0;
  /// Memory of the host that copies may read and write while the host goes on.
  [[nodiscard]] virtual std::byte* allocate_pinned(std::size_t bytes) = 0;
  virtual void free_pinned(std::byte* memory) = 0;

  /// The calling thread copies into pinned memory.
  virtual void fill(std::byte* pinned, const std::byte* from, std::size_t bytes) = 0;
  /// Enqueued on the stream: from pinned memory to the GPU's, or back.
  virtual void copy_in(Stream stream, std::byte* device, const std::byte* pinned, std::size_t bytes) = 0;
  virtual void copy_out(Stream stream, std::byte* pinned, const std::byte* device, std::size_t bytes) = 0;
  /// Enqueued on the stream: within the GPU's memory; `clear` sets all bytes to zero.
  virtual void copy(Stream stream, std::byte* to, const std::byte* from, std::size_t bytes) = 0;
  virtual void clear(Stream stream, std::byte* device, std::size_t bytes) = 0;
  /// The calling thread is about to read pinned memory: nothing to do for a GPU, something to check for a fake.
  virtual void reads(const std::byte* /*pinned*/, std::size_t /*bytes*/) {}
  /// The same, where somebody else is about to write it: a transport that receives a message.
  virtual void writes(std::byte* /*pinned*/, std::size_t /*bytes*/) {}

  /// What an op's kernels are called with; null where they need nothing.
  [[nodiscard]] virtual GpuStream* kernel_stream(Stream stream) = 0;
  /// What errors of this stream's kernels name from here on: the step, and whose kernel, "relu 'first'".
  virtual void enter(Stream stream, std::uint64_t step, const std::string& op) = 0;
  /// Enqueued on the stream: out[i] = left[i] + right[i], on the GPU, added in float32. `out` may be one of them. All
  /// are of one type: f32 or a low-precision one.
  virtual void add(Stream stream, DType dtype, const void* left, const void* right, void* out, std::int64_t n) = 0;
  void add(Stream stream, const float* left, const float* right, float* out, std::int64_t n) {
    add(stream, DType::f32, left, right, out, n);
  }
  /// Enqueued on the stream: `n` elements, cast on the GPU. The two do not overlap.
  virtual void cast(Stream stream, Cast cast, DType type, const void* from, void* to, std::int64_t n) = 0;
  /// Enqueued on the stream: values[i] *= *factor; both are on the GPU.
  virtual void scale(Stream stream, float* values, const float* factor, std::int64_t n) = 0;

  /// Records the kernels that `launch` enqueues on the stream, instead of running them. Kernels only: no events, no
  /// copies from or to the host. Null where this GPU records nothing: launch() has not been called then.
  [[nodiscard]] virtual std::unique_ptr<GpuGraph> capture(Stream /*stream*/, const std::function<void()>& /*launch*/) {
    return nullptr;
  }

  /// Bytes that allocate() could still get.
  [[nodiscard]] virtual std::size_t free_memory() = 0;
};

}  // namespace device
}  // namespace lockstep
