// GpuChunkNumbers: numbers by chunk of the model (squares for the norm, whether gradients are finite), of which this
// rank's GPU has computed those of the chunks that it updates. The others come from the ranks that update them, through
// the host: they are few.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "device/gpu/gpu.hpp"
#include "device/gpu/gpu_memory.hpp"

namespace lockstep::optim {

/// Every call waits for the stream; all ranks make the same calls in the same order.
class GpuChunkNumbers {
 public:
  struct Chunks {
    const std::vector<std::size_t>& own;  ///< numbers of those that this rank updates
    std::size_t here = 0;                 ///< of this rank's model, or part of it
    std::size_t all = 0;                  ///< of the whole model
  };
  /// From the numbers of this rank's model, of which the own ones are set, those of the whole model: see
  /// Updater::gather_numbers().
  using Gather = std::function<std::span<const double>(std::vector<double>& here, std::uint64_t step)>;

  /// The arguments must outlive it.
  GpuChunkNumbers(device::Gpu& gpu, device::Gpu::Stream stream, const Chunks& chunks, Gather gather);

  /// Sets the flag, on the GPU, if it is set on any rank.
  void spread(std::uint32_t* flag, std::uint64_t step);
  /// From one number per own chunk, returns those of all chunks of the model. Both are on the GPU.
  [[nodiscard]] const double* gather(const double* own, std::uint64_t step);

  /// Bytes that it allocates on the GPU.
  [[nodiscard]] static std::size_t bytes(std::size_t all_chunks) { return all_chunks * sizeof(double); }

 private:
  void copy_out(const device::PinnedBlock& pinned, const void* from, std::size_t bytes) const;

  device::Gpu& gpu_;
  device::Gpu::Stream stream_;
  device::Gpu::Event copied_;
  const std::vector<std::size_t>& own_chunks_;
  Gather gather_;
  std::size_t all_bytes_;
  device::PinnedBlock own_, all_on_host_, flag_;
  device::GpuBlock all_;
  std::vector<double> here_;
};

}  // namespace lockstep::optim
