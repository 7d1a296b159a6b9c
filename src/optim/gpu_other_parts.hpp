// GpuOtherParts: what the update of a part on a GPU needs from the ranks that have the others. It passes through the
// host: what this rank has to say is copied there, exchanged (OtherParts), and what comes is copied to the GPU.
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
#include "optim/other_parts.hpp"

namespace lockstep::optim {

/// Every call waits for what is on the stream; every rank makes the same ones in the same order.
class GpuOtherParts {
 public:
  /// `own_chunks`: of this part's parameters that are trained. What is given outlives it.
  GpuOtherParts(OtherParts& parts, const Program& program, const comm::GradientBuckets& buckets, device::Gpu& gpu,
                device::Gpu::Stream stream, const comm::GpuAllReduce& reducer, std::size_t own_chunks);

  /// After the reducer's finish(), for which the stream has waited: the sums of other parts' uses are on the GPU.
  void exchange(std::uint64_t step);
  /// Where the sum of use `number` is.
  [[nodiscard]] const float* sum(std::size_t number) const { return sums_[number].memory.as<const float>(); }
  /// Sets the flag, on the GPU, where it is set on any rank.
  void spread(std::uint32_t* flag, std::uint64_t step);
  /// From a number for each own chunk, those of all chunks of the model. Both lie on the GPU.
  [[nodiscard]] const double* gather(const double* own, std::uint64_t step);
  [[nodiscard]] std::size_t chunks() const { return parts_.chunks(); }

  /// That it allocates on the GPU.
  [[nodiscard]] static std::size_t bytes(const OtherParts& parts);

 private:
  /// Between host and GPU.
  struct Copy {
    std::size_t bytes = 0;
    device::PinnedBlock pinned;
    device::GpuBlock memory;
  };
  [[nodiscard]] Copy make_copy(std::size_t bytes) const;
  void copy_out(const device::PinnedBlock& pinned, const void* from, std::size_t bytes) const;
  void copy_in(const Copy& copy, const void* from) const;
  void wait() const;

  OtherParts& parts_;
  device::Gpu& gpu_;
  device::Gpu::Stream stream_;
  device::Gpu::Event copied_;
  /// The sum of a use of this part's own, for other parts.
  struct OwnSum {
    const float* on_gpu = nullptr;
    std::size_t elements = 0;
    device::PinnedBlock pinned;
  };
  std::map<std::size_t, OwnSum> own_sums_;  ///< by slot
  std::vector<Copy> sums_;                  ///< by number of OtherParts
  Copy whole_;                              ///< numbers by chunk of the model
  device::PinnedBlock own_, flag_;
  std::vector<double> own_numbers_;
};

}  // namespace lockstep::optim
