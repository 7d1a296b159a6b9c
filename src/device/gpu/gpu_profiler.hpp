// What a GPU does while steps are traced: its kernels and copies by its own clock, and ranges for NVIDIA's tools. The
// CUDA module has it by CUPTI and NVTX (device/cuda/cupti_profiler.hpp).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/trace.hpp"

namespace lockstep::device {

/// A kernel, a copy or a fill on a stream.
struct GpuActivity {
  std::string name;          ///< of the kernel; "copy to the GPU"
  std::uint32_t stream = 0;  ///< the profiler's number for it
  std::uint64_t begin = 0;   ///< nanoseconds of the profiler's clock
  std::uint64_t end = 0;     ///< the same
  std::int64_t bytes = -1;   ///< of a copy or a fill
};

/// One moment, by steady_seconds() and by the profiler's clock in nanoseconds.
struct ClockPair {
  double host = 0;
  std::uint64_t gpu = 0;
};

struct GpuRecording {
  std::vector<GpuActivity> activities;  ///< in no order
  ClockPair first, last;                ///< when it was started and stopped
  std::string problem;                  ///< what of it is missing, and why; "" : nothing
};

/// Its ranges are NVTX's. Not for two threads at once, but for the ranges.
class GpuProfiler : public TraceRanges {
 public:
  /// Loads what it needs. Why nothing can be recorded, or "".
  [[nodiscard]] virtual std::string start() = 0;
  /// All since start(), of work that the host has waited for.
  [[nodiscard]] virtual GpuRecording stop() = 0;
};

}  // namespace lockstep::device
