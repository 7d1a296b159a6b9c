#include "observe/telemetry/exposition.hpp"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <cmath>

namespace lockstep::telemetry {

namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

MetricType type_of(MetricKind kind) {
  switch (kind) {
    case MetricKind::counter:
      return MetricType::Counter;
    case MetricKind::gauge:
      return MetricType::Gauge;
    case MetricKind::histogram:
      return MetricType::Histogram;
  }
  return MetricType::Untyped;
}

std::vector<ClientMetric::Label> labels_of(const RankMetrics& metrics, const MetricInfo& info, int rank,
                                           std::size_t series) {
  std::vector<ClientMetric::Label> labels = {{"rank", std::to_string(rank)}};
  for (const auto& [name, value] : metrics.labels(info.id)) labels.push_back({name, value});
  if (!info.values.empty()) labels.push_back({info.label, metrics.series_name(info, series)});
  return labels;
}

ClientMetric histogram_of(const RankMetrics& metrics, const MetricInfo& info) {
  ClientMetric metric;
  std::uint64_t count = 0;
  const std::size_t buckets = info.upper_bounds.size() + 1;
  for (std::size_t i = 0; i < buckets; ++i) {
    count += static_cast<std::uint64_t>(metrics.get(info.id, i));
    const double bound = i < info.upper_bounds.size() ? info.upper_bounds[i] : INFINITY;
    metric.histogram.bucket.push_back({count, bound});
  }
  metric.histogram.sample_count = count;
  metric.histogram.sample_sum = metrics.get(info.id, buckets);
  return metric;
}

MetricFamily family_of(const RankMetrics& metrics, const MetricInfo& info, int rank) {
  MetricFamily family{info.name, info.help, type_of(info.kind), {}};
  if (info.kind == MetricKind::histogram) {
    if (std::isnan(metrics.get(info.id))) return family;
    family.metric.push_back(histogram_of(metrics, info));
    family.metric.back().label = labels_of(metrics, info, rank, 0);
    return family;
  }
  for (std::size_t i = 0; i < slots_of(info); ++i) {
    const double value = metrics.get(info.id, i);
    if (std::isnan(value)) continue;
    ClientMetric& metric = family.metric.emplace_back();
    metric.label = labels_of(metrics, info, rank, i);
    (info.kind == MetricKind::counter ? metric.counter.value : metric.gauge.value) = value;
  }
  return family;
}

}  // namespace

std::vector<MetricFamily> families_of(const RankMetrics& metrics, int rank, std::optional<MetricScope> scope) {
  std::vector<MetricFamily> families;
  for (const MetricInfo& info : metric_list()) {
    if (scope && info.scope != *scope) continue;
    MetricFamily family = family_of(metrics, info, rank);
    if (!family.metric.empty()) families.push_back(std::move(family));
  }
  return families;
}

std::string snapshot_text(const RankMetrics& metrics, int rank, const MetricLabels& labels) {
  auto families = families_of(metrics, rank, MetricScope::job);
  for (MetricFamily& family : families) {
    for (ClientMetric& metric : family.metric) {
      for (const auto& [name, value] : labels) metric.label.push_back({name, value});
    }
  }
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace lockstep::telemetry
