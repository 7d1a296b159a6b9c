#include "telemetry/diagnosis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "telemetry/text.hpp"

namespace lockstep::telemetry {
namespace {

constexpr double kNoticeable = 0.2;  // of a step: a fifth can be gained

/// "1.5 ms": steps and kernels are short.
std::string short_time(double seconds) {
  if (seconds >= 1) return fmt::format("{:.2f} s", seconds);
  return seconds >= 1e-3 ? fmt::format("{:.3g} ms", seconds * 1e3) : fmt::format("{:.3g} us", seconds * 1e6);
}

std::string evidence(const Diagnosis& d) {
  return fmt::format(
      "of a step of {} computing is {:.0f} %, waiting for data {:.0f} %, exposed communication {:.0f} %, load "
      "imbalance {:.0f} %, kernel launches {:.0f} %, update {:.0f} %",
      short_time(d.seconds), 100 * d.compute, 100 * d.input, 100 * d.reduce, 100 * d.imbalance, 100 * d.launch,
      100 * d.update);
}

std::string sentence(const Diagnosis& d, const std::string& host) {
  switch (d.bound) {
    case Bound::input:
      return fmt::format(
          "input-bound: {}; rank {} on {} waits most often. Try data.threads, data.cache=memory, or "
          "packed data (lockstep data pack).",
          evidence(d), d.rank, host);
    case Bound::reduce:
      return fmt::format(
          "communication-bound: {}. Try a larger batch_size, fewer ranks, or a faster network between them.",
          evidence(d));
    case Bound::imbalance:
      return fmt::format(
          "imbalanced: {}; rank {} on {} is the slowest most often. Try balance=auto, more shards, and "
          "see what else runs there.",
          evidence(d), d.rank, host);
    case Bound::launch:
      return fmt::format("launch-bound: {}; a kernel takes {}. Try fewer and larger shards, or a larger batch_size.",
                         evidence(d), short_time(d.kernel));
    case Bound::compute:
      break;
  }
  return fmt::format("compute-bound: {}. More ranks or threads make it faster.", evidence(d));
}

/// Over all shards of all ranks.
double mean_kernel(const std::vector<RankTrace>& traces) {
  double seconds = 0, kernels = 0;
  for (const RankTrace& trace : traces) {
    for (const TimelineSpan& span : trace.spans) {
      if (span.kernels < 0) continue;
      seconds += span.kernels;
      kernels += static_cast<double>(trace.kernels);
    }
  }
  return kernels > 0 ? seconds / kernels : 0;
}

Bound bound_of(const Diagnosis& d) {
  const std::vector<std::pair<double, Bound>> parts = {
      {d.input, Bound::input}, {d.reduce, Bound::reduce}, {d.imbalance, Bound::imbalance}, {d.launch, Bound::launch}};
  const auto largest =
      std::max_element(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return largest->first >= kNoticeable ? largest->second : Bound::compute;
}

}  // namespace

Diagnosis diagnose(const std::vector<PathStep>& path, const std::vector<RankTrace>& traces) {
  Diagnosis d;
  double total = 0;
  std::map<int, int> critical;
  for (const PathStep& step : path) {
    total += step.seconds;
    d.compute += step.compute;
    d.input += step.data;
    d.reduce += step.reduce;
    d.imbalance += step.excess;
    d.launch += step.launch;
    d.update += step.update;
    ++critical[step.rank];
  }
  for (double* part : {&d.compute, &d.input, &d.reduce, &d.imbalance, &d.launch, &d.update}) *part /= total;
  d.seconds = total / static_cast<double>(path.size());
  d.kernel = mean_kernel(traces);
  d.rank = std::max_element(critical.begin(), critical.end(), [](const auto& a, const auto& b) {
             return a.second < b.second;
           })->first;
  d.bound = bound_of(d);
  d.sentence = sentence(d, traces.at(static_cast<std::size_t>(d.rank)).host);
  return d;
}

std::string diagnosis_path(const std::string& folder) {
  return folder + "/diagnosis.txt";
}

}  // namespace lockstep::telemetry
