// What host code needs from a GPU: memory, streams, events and copies. Implemented by CudaGpu (in the module) and, on
// the CPU, by FakeGpu (in tests), which also checks what a GPU does not: the order of accesses, and the lifetime of
// memory.
//
// Work enqueued on one stream runs in that order; across streams, and for the host, only events define an order. The
// functions that create something are thread-safe, but streams must be created before other threads work.
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

class GpuStream;  // from the CUDA module

namespace device {

/// Kernels that were captured from a stream once, and are launched again by one call: with the same arguments, and the
/// current content of memory. Must not outlive its Gpu.
class GpuGraph {
 public:
  GpuGraph() = default;
  GpuGraph(const GpuGraph&) = delete;
  GpuGraph& operator=(const GpuGraph&) = delete;
  virtual ~GpuGraph() = default;
  /// Enqueues them on that stream. It must not be running when it is destroyed.
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

  /// Each thread must call this before any other function: it makes this GPU the thread's current one.
  virtual void make_current() = 0;

  /// They live as long as the Gpu.
  [[nodiscard]] virtual Stream make_stream() = 0;
  /// A stream for kernels, not only for copies: it has a kernel_stream().
  [[nodiscard]] virtual Stream make_kernel_stream() { return make_stream(); }
  [[nodiscard]] virtual Event make_event() = 0;

  /// From now on, the event represents everything enqueued on the stream so far.
  virtual void record(Event event, Stream stream) = 0;
  /// Whatever is enqueued on the stream from here on runs after the event's current work; a new event has none.
  virtual void wait(Stream stream, Event event) = 0;
  /// Blocks the calling thread.
  virtual void wait(Event event) = 0;
  /// Whether that wait would return immediately.
  [[nodiscard]] virtual bool done(Event event) = 0;

  /// 256-byte aligned, not cleared. The memory must not be in use when it is freed.
  [[nodiscard]] virtual std::byte* allocate(std::size_t bytes) = 0;
  virtual void free(std::byte* memory) = 0;
  /// Host memory that copies can access while the host continues.
  [[nodiscard]] virtual std::byte* allocate_pinned(std::size_t bytes) = 0;
  virtual void free_pinned(std::byte* memory) = 0;

  /// The calling thread copies into pinned memory.
  virtual void fill(std::byte* pinned, const std::byte* from, std::size_t bytes) = 0;
  /// Enqueues a copy from pinned memory to the GPU's, or back.
  virtual void copy_in(Stream stream, std::byte* device, const std::byte* pinned, std::size_t bytes) = 0;
  virtual void copy_out(Stream stream, std::byte* pinned, const std::byte* device, std::size_t bytes) = 0;
  /// Enqueues a copy within the GPU's memory; `clear` sets all bytes to zero.
  virtual void copy(Stream stream, std::byte* to, const std::byte* from, std::size_t bytes) = 0;
  virtual void clear(Stream stream, std::byte* device, std::size_t bytes) = 0;
  /// Announces that the calling thread will read pinned memory: does nothing on a GPU; a fake checks it.
  virtual void reads(const std::byte* /*pinned*/, std::size_t /*bytes*/) {}
  /// Announces that something else will write it, such as a transport that receives a message.
  virtual void writes(std::byte* /*pinned*/, std::size_t /*bytes*/) {}

  /// What an op's kernels are called with; null if they need nothing.
  [[nodiscard]] virtual GpuStream* kernel_stream(Stream stream) = 0;
  /// Sets what errors of this stream's kernels name from here on: the step, and the kernel's op, "relu 'first'".
  virtual void enter(Stream stream, std::uint64_t step, const std::string& op) = 0;
  /// Enqueues out[i] = left[i] + right[i] on the GPU, added in float32. `out` may be one of the operands. All have the
  /// same type: f32 or a low-precision type.
  virtual void add(Stream stream, DType dtype, const void* left, const void* right, void* out, std::int64_t n) = 0;
  void add(Stream stream, const float* left, const float* right, float* out, std::int64_t n) {
    add(stream, DType::f32, left, right, out, n);
  }
  /// Enqueues a cast of `n` elements on the GPU. The two must not overlap.
  virtual void cast(Stream stream, Cast cast, DType type, const void* from, void* to, std::int64_t n) = 0;
  /// Enqueues values[i] *= factors[i / columns]; both are on the GPU.
  virtual void scale(Stream stream, float* values, const float* factors, std::int64_t n, std::int64_t columns) = 0;

  /// Captures the kernels that `launch` enqueues on the stream, instead of running them. Kernels only: no events, no
  /// copies from or to the host. Null if this GPU cannot capture; launch() has not been called then.
  [[nodiscard]] virtual std::unique_ptr<GpuGraph> capture(Stream /*stream*/, const std::function<void()>& /*launch*/) {
    return nullptr;
  }

  /// Bytes that allocate() could still return.
  [[nodiscard]] virtual std::size_t free_memory() = 0;
};

}  // namespace device
}  // namespace lockstep
