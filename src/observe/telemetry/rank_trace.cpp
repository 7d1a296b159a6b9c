#include "observe/telemetry/rank_trace.hpp"

#include <fmt/format.h>

#include <cmath>

#include "core/files.hpp"
#include "core/untrusted.hpp"
#include "lockstep/error.hpp"
#include "observe/telemetry/trace_events.hpp"

namespace lockstep::telemetry {
namespace {

constexpr double kLongest = 1e15;  // seconds; larger values are not times, and with this limit sums and differences
                                   // stay finite

double number_of(const TraceJson& json, double max) {
  const auto value = json.get<double>();
  if (std::abs(value) > max) throw TraceJson::out_of_range::create(401, "expected a time", &json);
  return value;
}

double seconds_of(const TraceJson& json) {
  return number_of(json, kLongest);
}

TimelineSpan to_span(const TraceJson& event) {
  const TraceJson& arguments = event.at("args");
  const int track = track_of(event);
  const double start = number_of(event.at("ts"), kLongest * kMicroseconds) / kMicroseconds;
  const auto name = event.at("name").get<std::string>();
  const bool overlaps = event.at("ph") == "b";  // their names also contain their number
  return {.name = overlaps ? name.substr(0, name.rfind(' ')) : name,
          .track = track,
          .step = integer_of<std::int64_t>(arguments.at("step")),
          .item = integer_or(arguments, item_name(track), -1),
          .start = start,
          .end = start + seconds_of(arguments.at("seconds")),
          .kernels = arguments.value("kernel_seconds", -1.0),
          .bytes = integer_or(arguments, "bytes", std::int64_t{-1})};
}

RankTrace to_trace(const TraceJson& json) {
  const TraceJson& about = json.at("otherData");
  RankTrace trace{.rank = integer_of<int>(about.at("rank")),
                  .ranks = integer_of<int>(about.at("ranks")),
                  .host = about.at("host").get<std::string>(),
                  .run = about.at("run").get<double>(),
                  .kernels = integer_of<std::size_t>(about.at("kernels")),
                  .clocks = {},
                  .spans = {}};
  for (const TraceJson& clock : about.at("clocks")) {
    trace.clocks.push_back({seconds_of(clock.at("at")), seconds_of(clock.at("offset")), seconds_of(clock.at("error"))});
  }
  for (const TraceJson& event : json.at("traceEvents")) {
    if (event.at("ph") == "X" || event.at("ph") == "b") trace.spans.push_back(to_span(event));
  }
  return trace;
}

RankTrace read_trace(const std::string& folder, int rank) {
  const std::string path = trace_path(folder, rank);
  const auto text = read_whole_file(path);
  if (!text) {
    throw Error(ExitCode::usage, fmt::format("{}: expected the timeline of rank {}, found no such file; train with "
                                             "--profile, and copy the files of hosts that do not share the run "
                                             "directory",
                                             path, rank));
  }
  try {
    return to_trace(TraceJson::parse(*text));
  } catch (const TraceJson::exception&) {
    throw Error(ExitCode::usage,
                fmt::format("{}: expected the timeline of a rank, found something else; trace again", path));
  }
}

}  // namespace

std::string trace_path(const std::string& folder, int rank) {
  return fmt::format("{}/rank-{}.json", folder, rank);
}

std::string write_trace(const std::string& folder, const RankTrace& trace) {
  TraceJson json = {{"displayTimeUnit", "ms"},
                    {"otherData",
                     {{"rank", trace.rank},
                      {"ranks", trace.ranks},
                      {"host", trace.host},
                      {"run", trace.run},
                      {"kernels", trace.kernels},
                      {"clocks", TraceJson::array()}}},
                    {"traceEvents", TraceJson::array()}};
  for (const ClockSample& clock : trace.clocks) {
    json["otherData"]["clocks"].push_back({{"at", clock.at}, {"offset", clock.offset}, {"error", clock.error}});
  }
  add_names(trace, json["traceEvents"]);
  for (const TimelineSpan& span : trace.spans) add_span(span, trace.rank, json["traceEvents"]);
  return try_write_whole_file(trace_path(folder, trace.rank), json.dump() + "\n");
}

std::vector<RankTrace> read_traces(const std::string& folder) {
  std::vector<RankTrace> traces = {read_trace(folder, 0)};
  for (int rank = 1; rank < traces.front().ranks; ++rank) {
    traces.push_back(read_trace(folder, rank));
    if (traces.back().run == traces.front().run && traces.back().rank == rank) continue;
    throw Error(ExitCode::usage, fmt::format("{}: expected a timeline of the same start as rank 0's, found another; "
                                             "trace again",
                                             trace_path(folder, rank)));
  }
  return traces;
}

void align(RankTrace& trace) {
  if (trace.clocks.empty()) return;
  const ClockSample &first = trace.clocks.front(), &last = trace.clocks.back();
  const double time = last.at - first.at, slope = (last.offset - first.offset) / time;
  const double drift = time > 0 && std::isfinite(slope) ? slope : 0;
  const auto moved = [&](double at) { return at + first.offset + drift * (at - first.at); };
  for (TimelineSpan& span : trace.spans) {
    span.start = moved(span.start);
    span.end = moved(span.end);
  }
}

}  // namespace lockstep::telemetry
