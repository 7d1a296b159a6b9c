// Transfers inputs to the GPU ahead of time, on a stream of their own, while kernels work on earlier ones.
//
// There are `depth` slots, each with a pinned block and a block on the GPU. A batch passes through one of them:
//   put()      the host fills the pinned block, and the copy stream copies it to the GPU
//   take()     the compute stream waits for that copy; then kernels may read the block
//   release()  the kernels that read it have been enqueued on the compute stream
// The host waits in put() only if the previous copy from the same pinned block is not done; the copy waits for the
// kernels that read the same block before.
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

  /// `bytes`: the maximum of a batch. The Gpu must outlive the stage.
  InputStage(Gpu& gpu, Gpu::Stream compute, std::size_t bytes, std::size_t depth = 2);
  InputStage(const InputStage&) = delete;
  InputStage& operator=(const InputStage&) = delete;
  ~InputStage();

  /// The `parts` of one batch are placed one after another, each at a multiple of kPart bytes. At most `depth` batches
  /// may be between put() and release().
  void put(std::span<const std::span<const std::byte>> parts);
  /// The GPU memory of the oldest batch that was put and not taken.
  [[nodiscard]] const std::byte* take();
  /// Releases the oldest batch that was taken.
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
