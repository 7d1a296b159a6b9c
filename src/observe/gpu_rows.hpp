// The GPU's part of a rank's timeline: what its profiler recorded, put on the host's clock, a row for each stream.
#pragma once

#include <vector>

#include "device/gpu/gpu_profiler.hpp"
#include "telemetry/rank_trace.hpp"

namespace lockstep::observe {

/// steady_seconds() at a moment of the profiler's clock: on the line through both pairs, which is never far from a
/// second a second.
[[nodiscard]] double host_seconds(std::uint64_t gpu, const device::ClockPair& first, const device::ClockPair& last);

/// Adds the activities in order of time. Each belongs to the step whose `compute` began last before it, among the
/// spans that are there; streams are numbered from 0 in the order of the profiler's numbers.
void add_gpu_rows(const device::GpuRecording& recording, std::vector<telemetry::TimelineSpan>& spans);

}  // namespace lockstep::observe
