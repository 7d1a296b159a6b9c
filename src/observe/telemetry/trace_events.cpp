#include "observe/telemetry/trace_events.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "core/files.hpp"
#include "core/untrusted.hpp"
#include "lockstep/error.hpp"

namespace lockstep::telemetry {

namespace {

std::string track_name(int track) {
  if (track == kPhaseTrack) return "phases";
  if (track == kReduceTrack) return "reduction";
  if (track == kCheckpointTrack) return "checkpoint writer";
  if (track >= kGpuTrack) return fmt::format("GPU stream {}", track - kGpuTrack);
  return track > kCheckpointTrack ? fmt::format("prefetch {}", track - prefetch_track(0))
                                  : fmt::format("worker {}", track - worker_track(0));
}

std::int64_t nanoseconds(double seconds) {
  return std::llround(seconds * 1e9);
}

/// For `ts` and `dur`. Viewers cut off fractions of a nanosecond: without a bit more, a double just below a whole one
/// would lose it, and a span could seem to end after the one around it, or after the next one's begin.
double microseconds(std::int64_t nanoseconds) {
  return (nanoseconds + 0.25) / 1000;
}

}  // namespace

const char* item_name(int track) {
  return track == kReduceTrack || track == kBucketTrack ? "bucket" : "micro_batch";
}

int track_of(const TraceJson& event) {
  const int thread = integer_of<int>(event.at("tid"));
  if (thread < kFirstThread) throw TraceJson::out_of_range::create(401, "expected a track's thread", &event);
  return thread - kFirstThread;
}

void add_span(const TimelineSpan& span, int process, TraceJson& events) {
  const std::int64_t start = nanoseconds(span.start), end = nanoseconds(span.end);
  TraceJson arguments = {{"step", span.step}};
  if (span.item >= 0) arguments[item_name(span.track)] = span.item;
  arguments["seconds"] = (end - start) * 1e-9;
  if (span.kernels >= 0) arguments["kernel_seconds"] = span.kernels;
  if (span.bytes >= 0) arguments["bytes"] = span.bytes;
  TraceJson event = {
      {"name", span.name}, {"ts", microseconds(start)}, {"pid", process}, {"tid", span.track + kFirstThread}};
  if (span.track != kBucketTrack) {
    event["ph"] = "X";
    event["dur"] = microseconds(end - start);
    event["args"] = std::move(arguments);
    events.push_back(std::move(event));
    return;
  }
  event["name"] = fmt::format("{} {}", span.name, span.item);
  event["cat"] = "reduce";
  event["id2"]["local"] = fmt::format("{}.{}", span.step, span.item);  // unique within this process
  event["ph"] = "e";
  TraceJson begin = event;
  event["ts"] = microseconds(end);
  begin["ph"] = "b";
  begin["args"] = std::move(arguments);
  events.push_back(std::move(begin));
  events.push_back(std::move(event));
}

void add_name(const char* what, int process, int track, const std::string& name, TraceJson& events) {
  events.push_back(
      {{"name", what}, {"ph", "M"}, {"pid", process}, {"tid", track + kFirstThread}, {"args", {{"name", name}}}});
}

void add_names(const RankTrace& trace, TraceJson& events) {
  add_name("process_name", trace.rank, kPhaseTrack, fmt::format("rank {} on {}", trace.rank, trace.host), events);
  std::set<int> tracks;
  for (const TimelineSpan& span : trace.spans) tracks.insert(span.track);
  tracks.erase(kBucketTrack);  // viewers show a track for each bucket
  for (const int track : tracks) add_name("thread_name", trace.rank, track, track_name(track), events);
}

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
