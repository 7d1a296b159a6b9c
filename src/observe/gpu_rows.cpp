#include "observe/gpu_rows.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

namespace lockstep::observe {

namespace {

constexpr double kNano = 1e-9;

double nanoseconds_between(std::uint64_t from, std::uint64_t to) {
  return to >= from ? static_cast<double>(to - from) : -static_cast<double>(from - to);
}

/// When each step began: by time.
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

}  // namespace lockstep::observe
