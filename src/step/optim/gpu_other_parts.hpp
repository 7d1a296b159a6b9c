// GpuOtherParts: sums of gradients that the update of a part on a GPU needs from the ranks that have the other parts.
// They go through the host: this rank's are copied there, exchanged (OtherParts), and the received ones are copied to
// the GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "comm/reduce/all_reduce_gpu.hpp"
#include "comm/reduce/gradient_buckets.hpp"
#include "device/gpu/gpu.hpp"
#include "device/gpu/gpu_memory.hpp"
#include "graph/program.hpp"
#include "step/optim/other_parts.hpp"

namespace lockstep::optim {

/// exchange() waits for the stream; all ranks call it in the same steps.
class GpuOtherParts {
 public:
  /// The arguments must outlive it.
  GpuOtherParts(OtherParts& parts, const Program& program, const comm::GradientBuckets& buckets, device::Gpu& gpu,
                device::Gpu::Stream stream, const comm::GpuAllReduce& reducer);

  /// Call after the reducer's finish(), when the stream has waited for it: then the sums of other parts' uses are on
  /// the GPU.
  void exchange(std::uint64_t step);
  /// Address of the sum of use `number`.
  const float* sum(std::size_t number) const { return sums_[number].memory.as<const float>(); }

  /// Bytes that it allocates on the GPU.
  [[nodiscard]] static std::size_t bytes(const OtherParts& parts);

 private:
  /// A buffer on the host and one on the GPU.
  struct Copy {
    std::size_t bytes = 0;
    device::PinnedBlock pinned;
    device::GpuBlock memory;
  };
  Copy make_copy(std::size_t bytes) const;
  void copy_out(const device::PinnedBlock& pinned, const void* from, std::size_t bytes) const;
  void copy_in(const Copy& copy, const void* from) const;

  OtherParts& parts_;
  device::Gpu& gpu_;
  device::Gpu::Stream stream_;
  device::Gpu::Event copied_;
  /// The sum of one of this part's own uses, for other parts.
  struct OwnSum {
    const float* on_gpu = nullptr;
    std::size_t elements = 0;
    device::PinnedBlock pinned;
  };
  std::map<std::size_t, OwnSum> own_sums_;  ///< by slot
  std::vector<Copy> sums_;                  ///< by OtherParts' number
};

}  // namespace lockstep::optim
