// GPUs that are described to cuDNN instead of being found: it proposes and compiles plans for a GPU that is not
// present. The numbers are those that the two real GPUs report.
//
// A description cannot say how many clusters of blocks fit onto the GPU, for which cuDNN 9.19 asks a present one. It
// assumes none, and leaves out all kernels of the H100 that are launched as clusters ("No GPC available" in its log):
// for a weight gradient with two-byte factors, the plan chosen here is then the last of those that a real H100 is
// offered.
#pragma once

#include "device/cuda/cudnn_plan.hpp"

namespace lockstep::device {

struct DescribedGpu {
  const char* name;
  int architecture;  ///< 90 for compute capability 9.0
  int processors, clock_khz, memory_clock_khz, shared_memory, cache;
};

inline constexpr DescribedGpu kA100{"NVIDIA A100-SXM4-80GB", 80, 108, 1'410'000, 1'593'000, 166'912, 41'943'040};
inline constexpr DescribedGpu kH100{"NVIDIA H100 80GB HBM3", 90, 132, 1'980'000, 2'619'000, 232'448, 52'428'800};

/// From this call on, it is also the GPU that the CUDA runtime reports, as far as cuDNN's frontend asks.
[[nodiscard]] CudnnTarget describe(const DescribedGpu& gpu);

}  // namespace lockstep::device
