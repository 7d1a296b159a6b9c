#include "tools/sweep/live_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "observe/telemetry/text.hpp"

namespace lockstep::sweep {

namespace {

constexpr double kRedrawSeconds = 0.5;

std::string headline(const Study& study, std::size_t running, double seconds) {
  std::int64_t done = 0, failed = 0;
  for (const auto& trial : study.trials()) {
    done += trial.state == TrialState::done ? 1 : 0;
    failed += trial.state == TrialState::failed ? 1 : 0;
  }
  const SweepOptions& options = study.options();
  telemetry::Line line;
  line.add(fmt::format("{}  {}", options.name, options.ensemble ? "ensemble" : name_of(options.method)));
  const std::string of = options.budget.trials > 0 ? fmt::format("/{}", options.budget.trials) : "";
  line.add(fmt::format("{}{} {}s done", done, of, options.part()));
  line.add(fmt::format("{} running", running));
  if (failed > 0) line.add(fmt::format("{} failed", failed));
  if (const Trial* best = study.best(); best != nullptr) {
    line.add(fmt::format("best {} {} ({} {})", options.metric, telemetry::fixed_number(best->reports.back().value),
                         options.part(), best->number));
  }
  line.add(telemetry::clock_time(seconds));
  return line.text();
}

/// "from trial 3 at step 40, learning_rate 0.012"
std::string described(const Trial& trial) {
  std::string settings = text(trial.settings);
  if (!trial.origin) return settings;
  return fmt::format("from trial {} at step {}, {}", trial.origin->trial, trial.origin->steps, settings);
}

std::string running_row(const Study& study, const RunningTrial& running) {
  const Trial& trial = study.trials().at(running.trial);
  const std::string steps = running.steps > 0 ? fmt::format("{}/{}", running.step, running.steps) : "starting";
  const std::string value = std::isnan(running.value) ? "" : telemetry::fixed_number(running.value);
  return fmt::format("{:>6}  {:<8}{:>13}{:>10}  {}", running.trial, "running", steps, value, described(trial));
}

std::string best_row(const Trial& trial) {
  return fmt::format("{:>6}  {:<8}{:>13}{:>10}  {}", trial.number, name_of(trial.state), trial.steps,
                     telemetry::fixed_number(trial.reports.back().value), described(trial));
}

}  // namespace

std::vector<std::string> table_rows(const Study& study, const std::vector<RunningTrial>& running, double seconds,
                                    std::size_t columns, std::size_t rows) {
  std::vector<std::string> lines = {headline(study, running.size(), seconds),
                                    fmt::format("{:>6}  {:<8}{:>13}{:>10}  settings", study.options().part(), "state",
                                                "steps", study.options().metric)};
  for (const auto& one : running) lines.push_back(running_row(study, one));
  std::vector<const Trial*> ranked;
  for (const auto& trial : study.trials()) {
    if (trial.state == TrialState::done || trial.state == TrialState::paused) ranked.push_back(&trial);
  }
  std::stable_sort(ranked.begin(), ranked.end(), [&](const Trial* a, const Trial* b) {
    if (a->state != b->state) return a->state == TrialState::done;
    return study.is_better(a->reports.back().value, b->reports.back().value);
  });
  for (const Trial* trial : ranked) lines.push_back(best_row(*trial));
  if (lines.size() > rows + 2) lines.resize(rows + 2);
  for (auto& line : lines) line = line.substr(0, columns);
  return lines;
}

void LiveTable::clear() {
  if (drawn_ > 0) console_->print(fmt::format("\x1b[{}A\x1b[J", drawn_));
  drawn_ = 0;
}

void LiveTable::line(const std::string& text) {
  clear();
  console_->print(text + "\n");
  shown_ = {};
}

bool LiveTable::is_due() const {
  return terminal_ && seconds_since(shown_) >= kRedrawSeconds;
}

void LiveTable::show(const Study& study, const std::vector<RunningTrial>& running) {
  winsize size{};
  const bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 4;
  const std::size_t columns = known ? size.ws_col - 1U : 100, rows = known ? std::min(size.ws_row - 4U, 20U) : 15;
  clear();
  const auto lines = table_rows(study, running, seconds_since(start_), columns, rows);
  console_->print(fmt::format("{}\n", fmt::join(lines, "\n")));
  drawn_ = lines.size();
  shown_ = Clock::now();
}

std::string LiveTable::change(const Study& study, int number) {
  const Trial& trial = study.trials().at(number);
  const std::string settings = " (" + described(trial) + ")";
  const std::string name = fmt::format("{} {} ", study.options().part(), number);
  if (trial.state == TrialState::failed) return name + "failed: " + trial.message + settings;
  if (trial.state == TrialState::waiting) return name + "is tried again: " + trial.message;
  return name +
         fmt::format("{}: {} {} after {} steps", trial.state == TrialState::paused ? "paused" : trial.outcome,
                     study.options().metric, telemetry::fixed_number(trial.reports.back().value), trial.steps) +
         settings;
}

}  // namespace lockstep::sweep
