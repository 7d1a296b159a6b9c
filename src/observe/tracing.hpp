// Tracing: a timeline of some steps of this rank (`--profile`), written to `trace` in the run directory for `lockstep
// trace merge`. Recordings of its GPU's profiler are converted to the host's clock, with one row per stream.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "comm/transport/clock_offset.hpp"
#include "core/trace.hpp"
#include "lockstep/run_watcher.hpp"
#include "observe/rank_context.hpp"
#include "observe/telemetry/rank_trace.hpp"

namespace lockstep::device {
struct ClockPair;
struct GpuRecording;
}  // namespace lockstep::device

namespace lockstep::observe {

/// steady_seconds() for a time of the profiler's clock, by linear interpolation through both pairs (the clocks run at
/// almost the same rate).
[[nodiscard]] double host_seconds(std::uint64_t gpu, const device::ClockPair& first, const device::ClockPair& last);

/// Adds the activities in order of time. Each belongs to the step whose `compute` was the last to begin before it,
/// among the spans that are present; streams are numbered from 0 in the order of the profiler's numbers.
void add_gpu_rows(const device::GpuRecording& recording, std::vector<telemetry::TimelineSpan>& spans);

class Tracing {
 public:
  Tracing(const RankContext& run, const ProfileSteps& asked) : run_(run), asked_(asked) {}

  /// Collective, before the first step: the ranks agree on rank 0's steps and compare their clocks, and rank 0 removes
  /// what an earlier start has left. `steps`: done so far; `kernels`: of a micro-batch, forward and backward.
  void start(std::int64_t steps, std::size_t kernels);
  /// Null if this step (from 0) is not traced.
  std::shared_ptr<TraceRecorder> recorder(std::int64_t step) const {
    return step + 1 >= steps_.first && step + 1 <= steps_.last ? recorder_ : nullptr;
  }
  /// Call before the first traced step: from here on the rank's GPU is recorded, if it has one.
  void begin_recording();
  /// Call after each step (`steps` are done) and at the end of the run, on every rank: writes the file after the last
  /// traced step, or if no further one follows.
  void step_done(std::int64_t steps) {
    if (steps == steps_.last) finish();
  }
  void finish();

 private:
  void warn_of_gpu(const std::string& problem) const;
  std::string folder() const { return run_.job.run_directory + "/trace"; }

  RankContext run_;
  ProfileSteps asked_, steps_;               // requested by this rank; agreed on by all ranks
  std::shared_ptr<TraceRecorder> recorder_;  // threads outside of steps may still add to it while it is written
  comm::ClockOffset first_clock_;
  double began_ = 0;  // on rank 0's clock; identifies this start
  std::size_t kernels_ = 0;
  bool recording_ = false;  // whether the GPU is being recorded
};

}  // namespace lockstep::observe
