#include "cli/goodput_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "observe/telemetry/text.hpp"

namespace lockstep::cli {

namespace {

using bench::GoodputSummary;
using bench::GoodputTimes;
using telemetry::counted;
using telemetry::duration;

constexpr double kSecondsADay = 86'400;

struct TimeRow {
  double GoodputTimes::*seconds;
  const char* key;
  const char* words;
};

constexpr TimeRow kTimeRows[] = {
    {&GoodputTimes::steps, "steps", "steps: useful"},
    {&GoodputTimes::reduction, "reduction", "exposed all-reduce"},
    {&GoodputTimes::stragglers, "stragglers", "slow devices"},
    {&GoodputTimes::missing_hosts, "missing_hosts", "fewer hosts"},
    {&GoodputTimes::checkpoints, "checkpoints", "checkpoints"},
    {&GoodputTimes::lost_work, "lost_work", "lost work"},
    {&GoodputTimes::restarts, "restarts", "restarts"},
    {&GoodputTimes::awaiting_hosts, "awaiting_hosts", "waiting for hosts"},
};

/// "45.3 s", "1:02:03", "11.6 days"
std::string time_length(double seconds) {
  return seconds < 2 * kSecondsADay ? duration(seconds) : fmt::format("{:.1f} days", seconds / kSecondsADay);
}

double interval_seconds(const GoodputReport& report, const GoodputSummary& summary) {
  return summary.every_steps * (report.setup.step_seconds + report.setup.exposed_seconds);
}

void print_setup(const GoodputReport& report) {
  const bench::GoodputSetup& setup = report.setup;
  const double mtbf = setup.failures.device_mtbf_seconds;
  fmt::print("Simulated: {} on {}, {} of {}; {}; {} from {}\n", counted(setup.devices, "device"),
             counted(setup.devices / setup.devices_a_host, "host"), counted(setup.steps, "step"),
             duration(setup.step_seconds + setup.exposed_seconds),
             mtbf > 0 ? fmt::format("one fails every {}", time_length(mtbf / setup.devices)) : "none fails",
             counted(report.seeds, "seed"), setup.seed);
}

void print_interval(const GoodputReport& report, const GoodputSummary& of) {
  const double wall = of.wall_seconds.mean;
  fmt::print("\ncheckpoint   every {}, {}\n", time_length(interval_seconds(report, of)),
             counted(of.every_steps, "step"));
  fmt::print("goodput      {:.2f} %, std {:.2f}, from {:.2f} to {:.2f}\n", 100 * of.goodput.mean, 100 * of.goodput.std,
             100 * of.goodput.min, 100 * of.goodput.max);
  fmt::print("time         {}, std {}\n", time_length(wall), time_length(of.wall_seconds.std));
  fmt::print("failures     {:.1f}, from {:.0f} to {:.0f}\n\n", of.failures.mean, of.failures.min, of.failures.max);
  for (const TimeRow& row : kTimeRows) {
    const double seconds = of.mean_times.*row.seconds;
    if (seconds > 0) fmt::print("  {:<20} {:>6.2f} %  {:>10}\n", row.words, 100 * seconds / wall, time_length(seconds));
  }
}

void print_intervals(const GoodputReport& report) {
  const std::size_t best = bench::best_of(report.summaries);
  fmt::print("\n{:>10}  {:>10}  {:>9}  {:>9}  {:>17}\n", "checkpoint", "steps", "goodput", "std", "from, to");
  for (std::size_t i = 0; i < report.summaries.size(); ++i) {
    const GoodputSummary& of = report.summaries[i];
    fmt::print("{:>10}  {:>10}  {:>7.2f} %  {:>9.2f}  {:>8.2f} {:>8.2f}{}{}\n",
               time_length(interval_seconds(report, of)), telemetry::grouped(of.every_steps), 100 * of.goodput.mean,
               100 * of.goodput.std, 100 * of.goodput.min, 100 * of.goodput.max, i == best ? "  best" : "",
               of.unfinished > 0 ? fmt::format("  {} given up", counted(of.unfinished, "run")) : "");
  }
  if (std::isfinite(report.young_daly_seconds))
    fmt::print("\nYoung/Daly: every {}\n", time_length(report.young_daly_seconds));
}

nlohmann::ordered_json spread_json(const bench::Spread& spread) {
  return {{"mean", spread.mean}, {"std", spread.std}, {"min", spread.min}, {"max", spread.max}};
}

}  // namespace

void print_goodput(const GoodputReport& report) {
  const std::int64_t every = report.setup.checkpoints.every_steps;
  print_setup(report);
  const auto asked = std::find_if(report.summaries.begin(), report.summaries.end(),
                                  [every](const GoodputSummary& summary) { return summary.every_steps == every; });
  print_interval(report, *asked);
  if (report.summaries.size() > 1) print_intervals(report);
}

void print_goodput_json(const GoodputReport& report) {
  const std::size_t best = bench::best_of(report.summaries);
  for (std::size_t i = 0; i < report.summaries.size(); ++i) {
    const GoodputSummary& of = report.summaries[i];
    nlohmann::ordered_json line;
    line["event"] = "goodput";
    line["devices"] = report.setup.devices;
    line["steps"] = report.setup.steps;
    line["step_seconds"] = report.setup.step_seconds;
    line["exposed_seconds"] = report.setup.exposed_seconds;
    line["checkpoint_every_steps"] = of.every_steps;
    line["checkpoint_every_seconds"] = interval_seconds(report, of);
    line["best"] = i == best;
    line["young_daly_seconds"] = report.young_daly_seconds;  // JSON null if nothing fails
    line["seeds"] = report.seeds;
    line["goodput"] = spread_json(of.goodput);
    line["wall_seconds"] = spread_json(of.wall_seconds);
    line["failures"] = spread_json(of.failures);
    for (const TimeRow& row : kTimeRows) line["seconds"][row.key] = of.mean_times.*row.seconds;
    line["unfinished"] = of.unfinished;
    line["simulated_events"] = of.events;
    fmt::print("{}\n", line.dump());
  }
}

}  // namespace lockstep::cli
