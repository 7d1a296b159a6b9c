#include "observe/telemetry/merged_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/whole_file.hpp"
#include "lockstep/error.hpp"
#include "observe/telemetry/trace_events.hpp"

namespace lockstep::telemetry {
namespace {

double first_start(const std::vector<RankTrace>& traces) {
  double first = std::numeric_limits<double>::infinity();
  for (const RankTrace& trace : traces) {
    for (const TimelineSpan& span : trace.spans) first = std::min(first, span.start);
  }
  return first;
}

/// The path as one thread: where a step overlaps the previous one, on another rank, it is cut off.
void add_path(const std::vector<PathStep>& critical, int process, double first, TraceJson& events) {
  add_name("process_name", process, kPhaseTrack, "critical path", events);
  add_name("thread_name", process, kPhaseTrack, "what each step waited for", events);
  double end = first;
  for (const PathStep& step : critical) {
    for (TimelineSpan span : step.spans) {
      span.start = std::max(span.start, end) - first;
      span.end -= first;
      if (span.end <= span.start) continue;
      end = span.end + first;
      span.track = kPhaseTrack;
      span.name = fmt::format("{} of rank {}", span.name, step.rank);
      add_span(span, process, events);
    }
  }
}

}  // namespace

void write_merged_trace(const std::string& path, const std::vector<RankTrace>& traces,
                        const std::vector<PathStep>& critical, const std::string& verdict) {
  const double first = first_start(traces);
  TraceJson json = {
      {"displayTimeUnit", "ms"}, {"otherData", {{"diagnosis", verdict}}}, {"traceEvents", TraceJson::array()}};
  TraceJson& events = json["traceEvents"];
  for (const RankTrace& trace : traces) {
    add_names(trace, events);
    for (TimelineSpan span : trace.spans) {
      span.start -= first;
      span.end -= first;
      add_span(span, trace.rank, events);
    }
  }
  add_path(critical, static_cast<int>(traces.size()), first, events);
  const std::string problem = try_write_whole_file(path, json.dump() + "\n");
  if (!problem.empty()) {
    throw Error(ExitCode::cannot_create, fmt::format("the merged timeline cannot be written: {}", problem));
  }
}

}  // namespace lockstep::telemetry
