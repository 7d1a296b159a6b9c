#include "observe/tracing.hpp"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <span>
#include <utility>

#include "observe/gpu_rows.hpp"
#include "telemetry/rank_trace.hpp"

namespace lockstep::observe {

void Tracing::start(std::int64_t steps, std::size_t kernels) {
  std::array<double, 3> agreed{static_cast<double>(asked_.first), static_cast<double>(asked_.last), steady_seconds()};
  run_.communicator.broadcast(std::as_writable_bytes(std::span(agreed)), 0, {"clock", 0, run_.timeout()});
  steps_ = {static_cast<std::int64_t>(agreed[0]), static_cast<std::int64_t>(agreed[1])};
  if (steps_.last == 0) return;
  if (steps_.last <= steps) {
    run_.warn(fmt::format("--profile: nothing to trace: step {} is done already", steps));
    return;
  }
  if (run_.leads()) {
    std::error_code ignored;
    std::filesystem::remove_all(folder(), ignored);
  }
  began_ = agreed[2];
  kernels_ = kernels;
  first_clock_ = comm::clock_offset(run_.communicator, run_.timeout());
  recorder_ = std::make_shared<TraceRecorder>(run_.device.profiler());
}

void Tracing::begin_recording() {
  const auto profiler = run_.device.profiler();
  if (profiler == nullptr || recording_) return;
  const std::string problem = profiler->start();
  recording_ = problem.empty();
  if (!recording_) warn_of_gpu(problem);
}

void Tracing::warn_of_gpu(const std::string& problem) const {
  run_.warn("the timeline lacks rows of the GPU: " + problem);
}

void Tracing::finish() {
  if (!recorder_) return;
  const auto last_clock = comm::clock_offset(run_.communicator, run_.timeout());
  const int rank = run_.communicator.rank();
  telemetry::RankTrace trace{.rank = rank,
                             .ranks = run_.communicator.size(),
                             .host = run_.communicator.topology().host_name(rank),
                             .run = began_,
                             .kernels = kernels_,
                             .clocks = {},
                             .spans = {}};
  for (const auto& clock : {first_clock_, last_clock}) trace.clocks.push_back({clock.at, clock.seconds, clock.error});
  for (const TraceSpan& span : recorder_->take()) {
    trace.spans.push_back({.name = span.name,
                           .track = span.track,
                           .step = static_cast<std::int64_t>(span.step) + 1,
                           .item = span.item,
                           .start = span.start,
                           .end = span.end,
                           .kernels = span.kernels});
  }
  recorder_.reset();
  if (std::exchange(recording_, false)) {
    const auto recording = run_.device.profiler()->stop();
    add_gpu_rows(recording, trace.spans);
    if (!recording.problem.empty()) warn_of_gpu(recording.problem);
  }
  if (const std::string problem = telemetry::write_trace(folder(), trace); !problem.empty()) {
    run_.warn("the timeline could not be written: " + problem);
  }
}

}  // namespace lockstep::observe
