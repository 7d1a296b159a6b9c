// Tracing: a timeline of some steps of this rank (`--profile`), written to `trace` in the run directory for
// `lockstep trace merge`. What the profiler of its GPU recorded is put on the host's clock, a row for each stream.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "comm/transport/clock_offset.hpp"
#include "core/trace.hpp"
#include "lockstep/run_watcher.hpp"
#include "observe/rank_context.hpp"
#include "telemetry/rank_trace.hpp"

namespace lockstep::device {
struct ClockPair;
struct GpuRecording;
}  // namespace lockstep::device

namespace lockstep::observe {

/// steady_seconds() at a moment of the profiler's clock: on the line through both pairs, which is never far from a
/// second a second.
[[nodiscard]] double host_seconds(std::uint64_t gpu, const device::ClockPair& first, const device::ClockPair& last);

/// Adds the activities in order of time. Each belongs to the step whose `compute` began last before it, among the
/// spans that are there; streams are numbered from 0 in the order of the profiler's numbers.
void add_gpu_rows(const device::GpuRecording& recording, std::vector<telemetry::TimelineSpan>& spans);

class Tracing {
 public:
  Tracing(const RankContext& run, const ProfileSteps& asked) : run_(run), asked_(asked) {}

  /// Every rank calls it before its first step: they agree on rank 0's steps and compare their clocks, and rank 0
  /// removes what an earlier start left. `steps`: done so far; `kernels`: of a shard, forward and backward.
  void start(std::int64_t steps, std::size_t kernels);
  /// Null where no timeline was asked for of this step (from 0).
  [[nodiscard]] std::shared_ptr<TraceRecorder> recorder(std::int64_t step) const {
    return step + 1 >= steps_.first && step + 1 <= steps_.last ? recorder_ : nullptr;
  }
  /// Before the first traced step: from here on the rank's GPU is recorded, if it has one.
  void begin_recording();
  /// After each step (`steps` are done) and at the end of the run, on every rank: writes the file when the last traced
  /// step is done, or no further one comes.
  void step_done(std::int64_t steps) {
    if (steps == steps_.last) finish();
  }
  void finish();

 private:
  void warn_of_gpu(const std::string& problem) const;
  [[nodiscard]] std::string folder() const { return run_.job.run_directory + "/trace"; }

  RankContext run_;
  ProfileSteps asked_, steps_;               // by this rank; that all have agreed on
  std::shared_ptr<TraceRecorder> recorder_;  // threads beside the steps may still add to it when it is written
  comm::ClockOffset first_clock_;
  double began_ = 0;  // rank 0's clock: names this start
  std::size_t kernels_ = 0;
  bool recording_ = false;  // the GPU
};

}  // namespace lockstep::observe
