#include "observe/tracing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <utility>

#include "device/gpu/gpu_profiler.hpp"
#include "observe/telemetry/rank_trace.hpp"

namespace lockstep::observe {

namespace {

constexpr double kNano = 1e-9;

double nanoseconds_between(std::uint64_t from, std::uint64_t to) {
  return to >= from ? static_cast<double>(to - from) : -static_cast<double>(from - to);
}

/// The number of each step, by the time at which it began.
std::map<double, std::int64_t> steps_of(const std::vector<telemetry::TimelineSpan>& spans) {
  std::map<double, std::int64_t> steps;
  for (const auto& span : spans) {
    if (span.track == kPhaseTrack && span.name == "compute") steps[span.start] = span.step;
  }
  return steps;
}

std::int64_t step_at(const std::map<double, std::int64_t>& steps, double time) {
  if (steps.empty()) return 0;
  const auto after = steps.upper_bound(time);
  return after == steps.begin() ? after->second : std::prev(after)->second;
}

std::map<std::uint32_t, int> tracks_of(const device::GpuRecording& recording) {
  std::map<std::uint32_t, int> tracks;
  for (const auto& activity : recording.activities) tracks[activity.stream] = 0;
  int next = kGpuTrack;
  for (auto& [stream, track] : tracks) track = next++;
  return tracks;
}

}  // namespace

double host_seconds(std::uint64_t gpu, const device::ClockPair& first, const device::ClockPair& last) {
  const double apart = nanoseconds_between(first.gpu, last.gpu);
  const double slope = apart > 0 ? (last.host - first.host) / apart : kNano;
  return first.host + slope * nanoseconds_between(first.gpu, gpu);
}

void add_gpu_rows(const device::GpuRecording& recording, std::vector<telemetry::TimelineSpan>& spans) {
  const auto steps = steps_of(spans);
  const auto tracks = tracks_of(recording);
  std::vector<telemetry::TimelineSpan> rows;
  for (const auto& activity : recording.activities) {
    const double start = host_seconds(activity.begin, recording.first, recording.last);
    rows.push_back({.name = activity.name,
                    .track = tracks.at(activity.stream),
                    .step = step_at(steps, start),
                    .start = start,
                    .end = host_seconds(activity.end, recording.first, recording.last),
                    .bytes = activity.bytes});
  }
  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.start < b.start; });
  spans.insert(spans.end(), rows.begin(), rows.end());
}

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
