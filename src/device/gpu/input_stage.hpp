// Inputs on their way to the GPU: copied ahead on a stream of their own, while kernels work on the ones before.
//
// For each of `depth` places there is a pinned block and a block on the GPU. A batch passes through one of them:
//   put()      the host fills the pinned block, and the copy stream copies it over
//   take()     the compute stream waits for that copy; kernels may read the block
//   release()  the kernels that read it have been enqueued on the compute stream
// The host waits in put() only if the copy out of the same pinned block is not yet done; the copy waits for the kernels
// that read the same block before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/round_up.hpp"
#include "device/gpu/gpu.hpp"

namespace lockstep::device {

class InputStage {
 public:
  static constexpr std::size_t kPart = 256;
  static constexpr std::size_t up_to_part(std::size_t bytes) { return round_up(bytes, kPart); }

  /// `bytes`: the most of a batch. The Gpu must outlive the stage.
  InputStage(Gpu& gpu, Gpu::Stream compute, std::size_t bytes, std::size_t depth = 2);
  InputStage(const InputStage&) = delete;
  InputStage& operator=(const InputStage&) = delete;
  ~InputStage();

  /// `parts` of one batch, one after the other, each from a multiple of kPart bytes on. At most `depth` batches may be
  /// between put() and release().
  void put(std::span<const std::span<const std::byte>> parts);
  /// The oldest batch that was put and not taken: its memory on the GPU.
  [[nodiscard]] const std::byte* take();
  /// Of the oldest batch that was taken.
  void release();

 private:
  struct Place {
    std::byte *pinned = nullptr, *device = nullptr;
    Gpu::Event copied{}, computed{};
  };
  [[nodiscard]] Place& place(std::uint64_t batch) { return places_[batch % places_.size()]; }

  Gpu& gpu_;
  Gpu::Stream compute_, copy_;
  std::size_t bytes_;
  std::vector<Place> places_;
  std::uint64_t put_ = 0, taken_ = 0, released_ = 0;
};

}  // namespace lockstep::device
