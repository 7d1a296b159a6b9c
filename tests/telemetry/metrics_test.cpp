// The list of metrics, their values, and how they look to Prometheus.
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>

#include "observe/telemetry/exporter.hpp"
#include "observe/telemetry/exposition.hpp"
#include "observe/telemetry/process_sample.hpp"

namespace lockstep::telemetry {
namespace {

TEST(MetricList, NamesFollowTheRules) {
  std::set<std::string> names;
  for (const MetricInfo& metric : metric_list()) {
    const std::string name = metric.name;
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_TRUE(name.starts_with("lockstep_")) << name;
    EXPECT_EQ(name.ends_with("_total"), metric.kind == MetricKind::counter) << name;
    EXPECT_TRUE(std::string(metric.help).ends_with(".")) << name;
    EXPECT_EQ(name.find("milli"), std::string::npos) << name;
    EXPECT_TRUE(metric.values.empty() || metric.label[0] != '\0') << name;
  }
}

TEST(MetricList, ARankHasAtMost150Series) {
  std::size_t series = 0;
  for (const MetricInfo& metric : metric_list()) series += series_of(metric);
  constexpr std::size_t kServerOwn = 6;  // prometheus-cpp also reports its scrapes
  EXPECT_LE(series + kServerOwn, 150U);
  EXPECT_GT(series, 100U);  // all are counted
}

TEST(RankMetrics, OnlyWhatWasWrittenIsExported) {
  RankMetrics metrics;
  EXPECT_EQ(snapshot_text(metrics, 0, {}), "");
  metrics.set(Metric::loss, 0.5);
  metrics.set(Metric::micro_batches, 3);  // not a metric of the job
  EXPECT_EQ(snapshot_text(metrics, 0, {{"job", "digits"}}),
            "# HELP lockstep_loss Mean loss of the last step.\n# TYPE lockstep_loss gauge\n"
            "lockstep_loss{rank=\"0\",job=\"digits\"} 0.5\n");
}

TEST(RankMetrics, CountersAddUpBySeries) {
  RankMetrics metrics;
  metrics.begin(Metric::phase_seconds);
  metrics.add(Phase::compute, 1.5);
  metrics.add(Phase::compute, 0.25);
  metrics.add(Phase::update, 2);
  EXPECT_EQ(metrics.get(Metric::phase_seconds, static_cast<std::size_t>(Phase::compute)), 1.75);
  EXPECT_EQ(metrics.get(Metric::phase_seconds, static_cast<std::size_t>(Phase::update)), 2);
  EXPECT_EQ(metrics.get(Metric::phase_seconds, static_cast<std::size_t>(Phase::evaluate)), 0);
  EXPECT_TRUE(std::isnan(metrics.get(Metric::step_seconds)));
}

TEST(RankMetrics, BucketsHoldWhatIsAtMostTheirBound) {
  RankMetrics metrics;
  metrics.begin(Metric::step_seconds);
  const auto bounds = info_of(Metric::step_seconds).upper_bounds;
  for (const double value : {bounds[0], 0.04, 0.04, 1e6}) metrics.observe(Metric::step_seconds, value);
  EXPECT_EQ(metrics.get(Metric::step_seconds, 0), 1);  // a value at a bound counts in that bucket
  EXPECT_EQ(metrics.get(Metric::step_seconds, 4), 2);
  EXPECT_EQ(metrics.get(Metric::step_seconds, bounds.size()), 1);
  EXPECT_DOUBLE_EQ(metrics.get(Metric::step_seconds, bounds.size() + 1), bounds[0] + 0.08 + 1e6);
}

TEST(RankMetrics, OneStateIsTrue) {
  RankMetrics metrics;
  for (const State state : {State::starting, State::training, State::ended}) {
    metrics.set(state);
    for (std::size_t i = 0; i < info_of(Metric::state).values.size(); ++i) {
      EXPECT_EQ(metrics.get(Metric::state, i), i == static_cast<std::size_t>(state) ? 1 : 0);
    }
  }
}

TEST(RankMetrics, SeriesCanBeNamedAtTheStart) {
  RankMetrics metrics;
  metrics.name_series(Metric::validation_metric, {"accuracy"});
  metrics.set(Metric::validation_metric, 0.75);
  metrics.describe(Metric::job_info, {{"name", "a\"b"}});
  metrics.set(Metric::job_info, 1);
  const std::string text = snapshot_text(metrics, 0, {});
  EXPECT_NE(text.find("lockstep_validation_metric{rank=\"0\",metric=\"accuracy\"} 0.75\n"), std::string::npos) << text;
  EXPECT_NE(text.find("lockstep_job_info{rank=\"0\",name=\"a\\\"b\"} 1\n"), std::string::npos) << text;
}

TEST(ProcessSample, StatIsReadBehindTheName) {
  const auto sample = parse_process_stat(
      "17 (lock (step) 2) R 1 2 3 4 5 6 7 8 9 10 250 50 13 14 15 16 12 18 19 20 1000 22 23", 100, 4096);
  EXPECT_EQ(sample.user_seconds, 2.5);
  EXPECT_EQ(sample.system_seconds, 0.5);
  EXPECT_EQ(sample.threads, 12);
  EXPECT_EQ(sample.resident_bytes, 1000 * 4096.0);
}

TEST(ProcessSample, ThisProcessHasMemoryAndThreads) {
  RankMetrics metrics;
  sample_process(metrics);
  EXPECT_GT(metrics.get(Metric::process_memory), 1e6);
  EXPECT_GE(metrics.get(Metric::process_threads), 1);
  EXPECT_GE(metrics.get(Metric::process_cpu, 0), 0);
}

TEST(ScrapeTargets, AreNamedByTheAddressOrByTheirHosts) {
  const std::vector<ScrapeTarget> targets = {{"a", 9840}, {"b", 4711}};
  EXPECT_EQ(targets_json({targets[0]}, "127.0.0.1", {{"job", "digits"}}), R"([
  {
    "targets": [
      "127.0.0.1:9840"
    ],
    "labels": {
      "job": "digits",
      "host": "a"
    }
  }
]
)");
  const std::string all = targets_json(targets, "0.0.0.0", {});
  EXPECT_NE(all.find("\"a:9840\""), std::string::npos) << all;
  EXPECT_NE(all.find("\"b:4711\""), std::string::npos) << all;
  EXPECT_NE(targets_json({targets[0]}, "::1", {}).find("\"[::1]:9840\""), std::string::npos);
}

}  // namespace
}  // namespace lockstep::telemetry
