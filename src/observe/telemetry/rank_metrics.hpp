// RankMetrics: the values of the metric list on one rank.
//
// The training loop writes in every step: a relaxed load and store at a fixed address, no lock, no look-up, no
// allocation. Each series has one writing thread; any thread may read. A value that was never written is absent (NaN):
// its series is not exported.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "observe/telemetry/metric_list.hpp"

namespace lockstep::telemetry {

using MetricLabels = std::vector<std::pair<std::string, std::string>>;

class RankMetrics {
 public:
  RankMetrics();

  void set(Metric metric, double value, std::size_t series = 0) { at(metric, series).store(value, kRelaxed); }
  /// For a counter, after begin().
  void add(Metric metric, double amount, std::size_t series = 0) {
    std::atomic<double>& slot = at(metric, series);
    slot.store(slot.load(kRelaxed) + amount, kRelaxed);
  }
  void add(Phase phase, double seconds) { add(Metric::phase_seconds, seconds, static_cast<std::size_t>(phase)); }
  void set(State state);
  /// For a histogram, after begin().
  void observe(Metric metric, double value);
  /// Sets all series of a counter or histogram to 0.
  void begin(Metric metric);

  double get(Metric metric, std::size_t series = 0) const { return slots_[offset(metric) + series].load(kRelaxed); }

  /// Sets labels with information instead of a number ("device", "host"), or names of a metric's series that are known
  /// only at run time. Not while another thread reads.
  void describe(Metric metric, MetricLabels labels);
  void name_series(Metric metric, std::vector<std::string> names);
  const MetricLabels& labels(Metric metric) const;
  /// The value of the metric's label for this series; "" if it has none.
  std::string series_name(const MetricInfo& metric, std::size_t series) const;

 private:
  static constexpr auto kRelaxed = std::memory_order_relaxed;
  std::size_t offset(Metric metric) const { return offsets_[static_cast<std::size_t>(metric)]; }
  [[nodiscard]] std::atomic<double>& at(Metric metric, std::size_t series) { return slots_[offset(metric) + series]; }

  std::array<std::size_t, kMetrics> offsets_{};
  std::unique_ptr<std::atomic<double>[]> slots_;
  std::map<Metric, MetricLabels> labels_;
  std::map<Metric, std::vector<std::string>> names_;
};
static_assert(std::atomic<double>::is_always_lock_free);

}  // namespace lockstep::telemetry
