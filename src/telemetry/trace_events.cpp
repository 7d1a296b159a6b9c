#include "telemetry/trace_events.hpp"

#include <fmt/format.h>

#include <set>

#include "core/untrusted.hpp"

namespace lockstep::telemetry {
namespace {

std::string lane_name(int lane) {
  if (lane == kPhaseLane) return "phases";
  if (lane == kReduceLane) return "reduction";
  if (lane == kCheckpointLane) return "checkpoint writer";
  if (lane >= kGpuLane) return fmt::format("GPU stream {}", lane - kGpuLane);
  return lane > kCheckpointLane ? fmt::format("prefetch {}", lane - prefetch_lane(0))
                                : fmt::format("worker {}", lane - worker_lane(0));
}

}  // namespace

const char* item_name(int lane) {
  return lane == kReduceLane || lane == kBucketLane ? "bucket" : "shard";
}

int lane_of(const TraceJson& event) {
  const int thread = integer_of<int>(event.at("tid"));
  if (thread < kFirstThread) throw TraceJson::out_of_range::create(401, "expected a track's thread", &event);
  return thread - kFirstThread;
}

void add_span(const TimelineSpan& span, int process, TraceJson& events) {
  TraceJson arguments = {{"step", span.step}};
  if (span.item >= 0) arguments[item_name(span.lane)] = span.item;
  arguments["seconds"] = span.seconds();
  if (span.kernels >= 0) arguments["kernel_seconds"] = span.kernels;
  if (span.bytes >= 0) arguments["bytes"] = span.bytes;
  TraceJson event = {
      {"name", span.name}, {"ts", span.start * kMicroseconds}, {"pid", process}, {"tid", span.lane + kFirstThread}};
  if (span.lane != kBucketLane) {
    event["ph"] = "X";
    event["dur"] = span.seconds() * kMicroseconds;
    event["args"] = std::move(arguments);
    events.push_back(std::move(event));
    return;
  }
  event["name"] = fmt::format("{} {}", span.name, span.item);
  event["cat"] = "exchange";
  event["id2"]["local"] = fmt::format("{}.{}", span.step, span.item);  // of this process
  event["ph"] = "e";
  TraceJson begin = event;
  event["ts"] = span.end * kMicroseconds;
  begin["ph"] = "b";
  begin["args"] = std::move(arguments);
  events.push_back(std::move(begin));
  events.push_back(std::move(event));
}

void add_name(const char* what, int process, int lane, const std::string& name, TraceJson& events) {
  events.push_back(
      {{"name", what}, {"ph", "M"}, {"pid", process}, {"tid", lane + kFirstThread}, {"args", {{"name", name}}}});
}

void add_names(const RankTrace& trace, TraceJson& events) {
  add_name("process_name", trace.rank, kPhaseLane, fmt::format("rank {} on {}", trace.rank, trace.host), events);
  std::set<int> lanes;
  for (const TimelineSpan& span : trace.spans) lanes.insert(span.lane);
  lanes.erase(kBucketLane);  // tracks of their own
  for (const int lane : lanes) add_name("thread_name", trace.rank, lane, lane_name(lane), events);
}

}  // namespace lockstep::telemetry
