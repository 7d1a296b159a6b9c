#include "observe/telemetry/diagnosis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "core/trace.hpp"
#include "observe/telemetry/text.hpp"

namespace lockstep::telemetry {

namespace {

/// One step of one rank.
struct RankStep {
  std::map<std::string, TimelineSpan> phases;        ///< by name
  std::map<int, std::vector<TimelineSpan>> workers;  ///< by track, in order of time; without handing over
  std::map<int, double> handing_over;                ///< seconds by track
  double aside = 0;                                  ///< seconds of evaluation and checkpoint
  double end = 0;                                    ///< of the last span

  bool has(const char* phase) const { return phases.find(phase) != phases.end(); }
  bool whole() const { return has("compute") && has("reduce") && has("update"); }
  /// The track of the worker that ended last; 0: the rank had no micro-batches.
  int last_worker() const {
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

/// The work of the rank's last worker.
struct Work {
  double data = 0, parts = 0, compute = 0;
};

bool is_wait_for_parts(const std::string& name) {
  return name == kActivationWait || name == kGradientWait || name == kSendWait;
}

bool is_computing(const std::string& name) {
  return name == "micro_batch" || name == "forward" || name == "backward";
}

Work work_of(const RankStep& step) {
  Work work;
  const int track = step.last_worker();
  if (track == 0) return work;
  const auto handing_over = step.handing_over.find(track);
  if (handing_over != step.handing_over.end()) work.compute = handing_over->second;
  for (const TimelineSpan& span : step.workers.at(track)) {
    if (span.name == "data wait") work.data += span.seconds();
    if (is_wait_for_parts(span.name)) work.parts += span.seconds();
    if (is_computing(span.name)) work.compute += span.kernels;
  }
  return work;
}

/// The beginning of the rank's next step; if it is not traced, the end of this one.
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
  for (const Steps& steps : all) mean += work_of(steps.at(number)).compute / all.size();
  PathStep path{.step = number, .rank = static_cast<int>(last - all.begin())};
  path.seconds = next_start(*last, number) - critical.phases.at("compute").start - critical.aside;
  path.data = work.data;
  path.parts = work.parts;
  path.excess = std::max(0.0, work.compute - mean);
  path.compute = work.compute - path.excess;
  path.reduce = critical.phases.at("reduce").seconds();
  path.update = critical.phases.at("update").seconds();
  path.launch = std::max(0.0, path.seconds - work.data - work.parts - work.compute - path.reduce - path.update);
  add_spans(critical, path);
  return path;
}

constexpr double kNoticeable = 0.2;  // of a step: a fifth can be gained

/// "1.5 ms": steps and kernels are short.
std::string short_time(double seconds) {
  if (seconds >= 1) return fmt::format("{:.2f} s", seconds);
  return seconds >= 1e-3 ? fmt::format("{:.3g} ms", seconds * 1e3) : fmt::format("{:.3g} us", seconds * 1e6);
}

std::string evidence(const Diagnosis& d) {
  return fmt::format(
      "of a step of {} computing is {:.0f} %, waiting for data {:.0f} %, {}exposed communication {:.0f} %, load "
      "imbalance {:.0f} %, kernel launches {:.0f} %, update {:.0f} %",
      short_time(d.seconds), 100 * d.compute, 100 * d.input,
      d.parts > 0 ? fmt::format("for other parts {:.0f} %, ", 100 * d.parts) : "", 100 * d.reduce, 100 * d.imbalance,
      100 * d.launch, 100 * d.update);
}

std::string sentence(const Diagnosis& d, const std::string& host) {
  switch (d.bound) {
    case Bound::input:
      return fmt::format(
          "input-bound: {}; rank {} on {} waits most often. Try data.threads, data.cache=memory, or "
          "packed data (lockstep data pack).",
          evidence(d), d.rank, host);
    case Bound::parts:
      return fmt::format(
          "pipeline-bound: {}. Try more micro-batches, a larger parallel.in_flight, or parts of more even cost.",
          evidence(d));
    case Bound::reduce:
      return fmt::format(
          "communication-bound: {}. Try a larger batch_size, fewer ranks, or a faster network between them.",
          evidence(d));
    case Bound::imbalance:
      return fmt::format(
          "imbalanced: {}; rank {} on {} is the slowest most often. Try balance=auto, more micro-batches, and "
          "see what else runs there.",
          evidence(d), d.rank, host);
    case Bound::launch:
      return fmt::format(
          "launch-bound: {}; a kernel takes {}. Try fewer and larger micro-batches, or a larger batch_size.",
          evidence(d), short_time(d.kernel));
    case Bound::compute:
      break;
  }
  return fmt::format("compute-bound: {}. More ranks or threads make it faster.", evidence(d));
}

/// Averaged over all micro-batches of all ranks.
double mean_kernel(const std::vector<RankTrace>& traces) {
  double seconds = 0, kernels = 0;
  for (const RankTrace& trace : traces) {
    std::set<std::pair<std::int64_t, int>> micro_batches;  // those of parts have several spans each
    for (const TimelineSpan& span : trace.spans) {
      if (span.kernels < 0) continue;
      seconds += span.kernels;
      micro_batches.emplace(span.step, span.item);
    }
    kernels += static_cast<double>(trace.kernels) * micro_batches.size();
  }
  return kernels > 0 ? seconds / kernels : 0;
}

Bound bound_of(const Diagnosis& d) {
  const std::vector<std::pair<double, Bound>> parts = {{d.input, Bound::input},
                                                       {d.parts, Bound::parts},
                                                       {d.reduce, Bound::reduce},
                                                       {d.imbalance, Bound::imbalance},
                                                       {d.launch, Bound::launch}};
  const auto largest =
      std::max_element(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return largest->first >= kNoticeable ? largest->second : Bound::compute;
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

Diagnosis diagnose(const std::vector<PathStep>& path, const std::vector<RankTrace>& traces) {
  Diagnosis d;
  double total = 0;
  std::map<int, int> critical;
  for (const PathStep& step : path) {
    total += step.seconds;
    d.compute += step.compute;
    d.input += step.data;
    d.parts += step.parts;
    d.reduce += step.reduce;
    d.imbalance += step.excess;
    d.launch += step.launch;
    d.update += step.update;
    ++critical[step.rank];
  }
  for (double* part : {&d.compute, &d.input, &d.parts, &d.reduce, &d.imbalance, &d.launch, &d.update}) *part /= total;
  d.seconds = total / path.size();
  d.kernel = mean_kernel(traces);
  d.rank = std::max_element(critical.begin(), critical.end(), [](const auto& a, const auto& b) {
             return a.second < b.second;
           })->first;
  d.bound = bound_of(d);
  d.sentence = sentence(d, traces.at(d.rank).host);
  return d;
}

std::string diagnosis_path(const std::string& folder) {
  return folder + "/diagnosis.txt";
}

}  // namespace lockstep::telemetry
