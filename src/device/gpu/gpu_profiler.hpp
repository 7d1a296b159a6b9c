// What a GPU does while steps are traced: its kernels and copies by its own clock, and ranges for NVIDIA's tools. The
// CUDA module implements it with CUPTI and NVTX (device/cuda/cupti_profiler.hpp).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/trace.hpp"

namespace lockstep::device {

/// A kernel, a copy or a fill on a stream.
struct GpuActivity {
  std::string name;          ///< the kernel's name; "copy to the GPU"
  std::uint32_t stream = 0;  ///< the profiler's number
  std::uint64_t begin = 0;   ///< nanoseconds on the profiler's clock
  std::uint64_t end = 0;     ///< nanoseconds on the profiler's clock
  std::int64_t bytes = -1;   ///< for a copy or a fill
};

/// The same moment as steady_seconds() and on the profiler's clock, in nanoseconds.
struct ClockPair {
  double host = 0;
  std::uint64_t gpu = 0;
};

struct GpuRecording {
  std::vector<GpuActivity> activities;  ///< in any order
  ClockPair first, last;                ///< at start() and stop()
  std::string problem;                  ///< what is missing in it, and why; "": nothing
};

/// Its ranges are NVTX's. Not thread-safe, except for the ranges.
class GpuProfiler : public TraceRanges {
 public:
  /// Loads what it needs. Returns why nothing can be recorded, or "".
  [[nodiscard]] virtual std::string start() = 0;
  /// Everything since start(), of work that the host has waited for.
  [[nodiscard]] virtual GpuRecording stop() = 0;
};

}  // namespace lockstep::device
