#include "observe/telemetry/rank_metrics.hpp"

#include <limits>

namespace lockstep::telemetry {

RankMetrics::RankMetrics() {
  std::size_t count = 0;
  for (const MetricInfo& metric : metric_list()) {
    offsets_[static_cast<std::size_t>(metric.id)] = count;
    count += slots_of(metric);
  }
  slots_ = std::make_unique<std::atomic<double>[]>(count);
  for (std::size_t i = 0; i < count; ++i) slots_[i].store(std::numeric_limits<double>::quiet_NaN(), kRelaxed);
}

void RankMetrics::set(State state) {
  const std::size_t count = info_of(Metric::state).values.size();
  for (std::size_t i = 0; i < count; ++i) {
    if (i != static_cast<std::size_t>(state)) set(Metric::state, 0, i);
  }
  set(Metric::state, 1, static_cast<std::size_t>(state));
}

void RankMetrics::observe(Metric metric, double value) {
  const auto bounds = info_of(metric).upper_bounds;
  std::size_t bucket = 0;
  while (bucket < bounds.size() && value > bounds[bucket]) ++bucket;
  add(metric, value, bounds.size() + 1);
  add(metric, 1, bucket);
}

void RankMetrics::begin(Metric metric) {
  for (std::size_t i = 0; i < slots_of(info_of(metric)); ++i) set(metric, 0, i);
}

void RankMetrics::describe(Metric metric, MetricLabels labels) {
  labels_[metric] = std::move(labels);
}

void RankMetrics::name_series(Metric metric, std::vector<std::string> names) {
  names_[metric] = std::move(names);
}

const MetricLabels& RankMetrics::labels(Metric metric) const {
  static const MetricLabels none;
  const auto found = labels_.find(metric);
  return found == labels_.end() ? none : found->second;
}

std::string RankMetrics::series_name(const MetricInfo& metric, std::size_t series) const {
  if (const auto found = names_.find(metric.id); found != names_.end()) {
    return series < found->second.size() ? found->second[series] : "";
  }
  return series < metric.values.size() ? metric.values[series] : "";
}

}  // namespace lockstep::telemetry
