#include "telemetry/critical_path.hpp"

#include <algorithm>
#include <map>
#include <string>

namespace lockstep::telemetry {
namespace {

/// One step of one rank.
struct RankStep {
  std::map<std::string, TimelineSpan> phases;        ///< by name
  std::map<int, std::vector<TimelineSpan>> workers;  ///< by track, in order of time; without what they hand over
  std::map<int, double> handing_over;                ///< seconds by track
  double aside = 0;                                  ///< seconds of evaluation and checkpoint
  double end = 0;                                    ///< of the last span

  [[nodiscard]] bool has(const char* phase) const { return phases.find(phase) != phases.end(); }
  [[nodiscard]] bool whole() const { return has("compute") && has("reduce") && has("update"); }
  /// The track of the worker that ended last; 0: the rank had no shards.
  [[nodiscard]] int last_worker() const {
    const auto last = std::max_element(workers.begin(), workers.end(), [](const auto& a, const auto& b) {
      return a.second.back().end < b.second.back().end;
    });
    return last == workers.end() ? 0 : last->first;
  }
};

using Steps = std::map<std::int64_t, RankStep>;

void add_phase(const TimelineSpan& span, RankStep& step) {
  step.end = std::max(step.end, span.end);
  if (span.name == "evaluate" || span.name == "checkpoint") {
    step.aside += span.seconds();
  } else {
    step.phases[span.name] = span;
  }
}

Steps steps_of(const RankTrace& trace) {
  Steps steps;
  for (const TimelineSpan& span : trace.spans) {
    if (span.track >= kBesideTrack) continue;
    RankStep& step = steps[span.step];
    if (span.track == kPhaseTrack) {
      add_phase(span, step);
    } else if (span.track < kReduceTrack && span.name == "hand over") {
      step.handing_over[span.track] += span.seconds();
    } else if (span.track < kReduceTrack) {
      step.workers[span.track].push_back(span);
    }
  }
  for (auto& [number, step] : steps) {
    for (auto& [track, spans] : step.workers) {
      std::sort(spans.begin(), spans.end(), [](const auto& a, const auto& b) { return a.start < b.start; });
    }
  }
  return steps;
}

/// Of the rank's last worker.
struct Work {
  double data = 0, compute = 0;
};

Work work_of(const RankStep& step) {
  Work work;
  const int track = step.last_worker();
  if (track == 0) return work;
  const auto handing_over = step.handing_over.find(track);
  if (handing_over != step.handing_over.end()) work.compute = handing_over->second;
  for (const TimelineSpan& span : step.workers.at(track)) {
    if (span.name == "data wait") work.data += span.seconds();
    if (span.name == "shard") work.compute += span.kernels;
  }
  return work;
}

/// When the rank's next step begins; else the end of this one.
double next_start(const Steps& steps, std::int64_t number) {
  const auto next = steps.upper_bound(number);
  const bool known = next != steps.end() && next->first - 1 == number && next->second.has("compute");
  return known ? next->second.phases.at("compute").start : steps.at(number).end;
}

void add_spans(const RankStep& critical, PathStep& path) {
  const int track = critical.last_worker();
  if (track != 0) path.spans = critical.workers.at(track);
  path.spans.push_back(critical.phases.at("reduce"));
  path.spans.push_back(critical.phases.at("update"));
}

PathStep path_of(std::int64_t number, const std::vector<Steps>& all) {
  const auto last = std::max_element(all.begin(), all.end(), [&](const Steps& a, const Steps& b) {
    return a.at(number).phases.at("reduce").start < b.at(number).phases.at("reduce").start;
  });
  const RankStep& critical = last->at(number);
  const Work work = work_of(critical);
  double mean = 0;
  for (const Steps& steps : all) mean += work_of(steps.at(number)).compute / static_cast<double>(all.size());
  PathStep path{.step = number, .rank = static_cast<int>(last - all.begin())};
  path.seconds = next_start(*last, number) - critical.phases.at("compute").start - critical.aside;
  path.data = work.data;
  path.excess = std::max(0.0, work.compute - mean);
  path.compute = work.compute - path.excess;
  path.reduce = critical.phases.at("reduce").seconds();
  path.update = critical.phases.at("update").seconds();
  path.launch = std::max(0.0, path.seconds - work.data - work.compute - path.reduce - path.update);
  add_spans(critical, path);
  return path;
}

}  // namespace

std::vector<PathStep> critical_path(const std::vector<RankTrace>& traces) {
  std::vector<Steps> all;
  for (const RankTrace& trace : traces) all.push_back(steps_of(trace));
  std::vector<PathStep> path;
  for (const auto& [number, first] : all.front()) {
    const std::int64_t step = number;
    const bool whole = std::all_of(all.begin(), all.end(), [step](const Steps& steps) {
      const auto found = steps.find(step);
      return found != steps.end() && found->second.whole();
    });
    if (whole) path.push_back(path_of(step, all));
  }
  return path;
}

}  // namespace lockstep::telemetry
