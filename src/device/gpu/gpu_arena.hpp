// A rank's working memory on its GPU: one block, as large as the largest plan so far asks for, and never the whole
// card.
#pragma once

#include <cstddef>

#include "device/gpu/gpu.hpp"

namespace lockstep::device {

class GpuArena {
 public:
  /// The Gpu must outlive the arena.
  explicit GpuArena(Gpu& gpu) : gpu_(gpu), last_use_(gpu.make_event()) {}
  GpuArena(const GpuArena&) = delete;
  GpuArena& operator=(const GpuArena&) = delete;
  ~GpuArena();

  /// At least so many bytes. Where the block has to grow, this waits for its last use, and the old content is lost;
  /// addresses stay otherwise.
  [[nodiscard]] std::byte* reserve(std::size_t bytes);
  /// Work on this block was enqueued on the stream, the last of the streams that use it.
  void used_by(Gpu::Stream stream) { gpu_.record(last_use_, stream); }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  void release();
  Gpu& gpu_;
  Gpu::Event last_use_;
  std::byte* block_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace lockstep::device
