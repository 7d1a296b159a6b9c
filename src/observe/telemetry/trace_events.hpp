// Elements of the trace event format: complete events ("X"), asynchronous ones ("b" and "e") for spans that may
// overlap, and names of processes and threads ("M"). Times are microseconds.
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

#include "observe/telemetry/diagnosis.hpp"
#include "observe/telemetry/rank_trace.hpp"

namespace lockstep::telemetry {

using TraceJson = nlohmann::ordered_json;

inline constexpr double kMicroseconds = 1e6;
/// Thread numbers begin here: Perfetto takes thread 0 of a process, and one with the process's number, for its main
/// thread.
inline constexpr int kFirstThread = 10'000;

/// What the items of a track's spans are: "micro_batch" or "bucket".
[[nodiscard]] const char* item_name(int track);
/// Adds the span to process `process`.
void add_span(const TimelineSpan& span, int process, TraceJson& events);
/// `what`: "process_name" or "thread_name".
void add_name(const char* what, int process, int track, const std::string& name, TraceJson& events);
/// The track that an event's thread stands for.
[[nodiscard]] int track_of(const TraceJson& event);
/// Adds the names of a rank and its tracks.
void add_names(const RankTrace& trace, TraceJson& events);

/// `traces` must be aligned; the first span begins at 0. The file also contains `verdict`. Throws Error(cannot_create)
/// if the file cannot be written.
void write_merged_trace(const std::string& path, const std::vector<RankTrace>& traces,
                        const std::vector<PathStep>& critical, const std::string& verdict);

}  // namespace lockstep::telemetry
