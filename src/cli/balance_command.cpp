// lockstep balance report: who computed, who waited, what the balancer did and why. If the model is cut into parts, the
// ranks of a part divide its micro-batches among them; shares and moves are then reported part by part.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <fstream>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "core/median.hpp"
#include "lockstep/error.hpp"
#include "observe/telemetry/event_json.hpp"
#include "observe/telemetry/event_text.hpp"
#include "observe/telemetry/text.hpp"

namespace lockstep::cli {

namespace {

using events::ByRank;

constexpr std::int64_t kSettling = 2;  // steps after a move that are left out of its measured time

struct DoneStep {
  std::int64_t step = 0;
  double seconds = 0;  ///< since the first step began
};

struct Attempt {
  std::optional<events::Start> start;
  std::optional<events::End> end;
  std::vector<events::Balance> moves;
  std::vector<DoneStep> steps;
  std::vector<events::Part> parts;  ///< empty: the model is whole
};

// A prediction must cover both assignments, or be absent.
void check_prediction(const events::Event& event, std::string& damage) {
  const auto* move = std::get_if<events::Balance>(&event);
  if (move == nullptr || move->predicted_seconds.has_value() == move->predicted_before_seconds.has_value()) return;
  damage = "expected 'predicted_before_seconds' with 'predicted_seconds'";
}

// The newest attempt: the events after the last `start`, and the first assignment, which is reported just before it.
Attempt read_attempt(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    throw Error(ExitCode::usage,
                fmt::format("{}: expected the events of a run, found no such file; name a run directory "
                            "of a run that has started",
                            path));
  }
  Attempt attempt;
  std::vector<events::Balance> early;  // moves since the last step or end
  std::size_t number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    auto read = telemetry::read_event(line);
    if (read.event) check_prediction(*read.event, read.damage);
    if (!read.damage.empty()) {
      throw Error(ExitCode::data, fmt::format("{}:{}: the event '{}' is damaged: {}; delete the line", path, number,
                                              read.name, read.damage));
    }
    if (!read.event) continue;  // torn, from a run that was killed; or written by another program
    if (auto* start = std::get_if<events::Start>(&*read.event)) {
      attempt = {.start = std::move(*start), .end = {}, .moves = std::move(early), .steps = {}, .parts = {}};
      early = {};
    } else if (auto* part = std::get_if<events::Part>(&*read.event)) {
      attempt.parts.push_back(std::move(*part));
    } else if (auto* move = std::get_if<events::Balance>(&*read.event)) {
      attempt.moves.push_back(*move);
      early.push_back(std::move(*move));
    } else if (const auto* step = std::get_if<events::Step>(&*read.event)) {
      attempt.steps.push_back({step->step, step->seconds});
      early.clear();
    } else if (auto* end = std::get_if<events::End>(&*read.event)) {
      attempt.end = std::move(*end);
      early.clear();
    }
  }
  if (!attempt.start || attempt.start->ranks < 2) {
    throw Error(ExitCode::usage,
                fmt::format("{}: expected a run on several ranks, found {}; one rank has nothing to balance", path,
                            attempt.start ? "one rank" : "no run"));
  }
  return attempt;
}

std::string numbers(const ByRank& values) {
  telemetry::Line line(" ");
  for (const auto& [rank, value] : values) line.add(telemetry::short_number(value));
  return line.text();
}

/// "0.2 0.1"; if the model is cut into parts, "part 1: 0.2 0.1" for each part whose ranks have values.
std::string numbers(const Attempt& attempt, const ByRank& values) {
  if (attempt.parts.empty()) return numbers(values);
  telemetry::Line line("; ");
  for (const events::Part& part : attempt.parts) {
    ByRank own;
    for (const int rank : telemetry::ranks_of(part)) {
      if (values.contains(rank)) own[rank] = values.at(rank);
    }
    if (!own.empty()) line.add(fmt::format("part {}: {}", part.part, numbers(own)));
  }
  return line.text();
}

// Median time in seconds of the steps between two moves; where the events leave steps out, of means over them.
double measured_seconds(const Attempt& attempt, std::int64_t from, std::int64_t end) {
  std::vector<double> seconds;
  for (std::size_t i = 1; i < attempt.steps.size(); ++i) {
    const DoneStep& step = attempt.steps[i];
    if (step.step <= from + kSettling || step.step > end) continue;
    const DoneStep& before = attempt.steps[i - 1];
    const double taken = (step.seconds - before.seconds) / (step.step - before.step);
    if (std::isfinite(taken)) seconds.push_back(taken);
  }
  return median(std::move(seconds));
}

std::string head(const std::string& run_directory, const Attempt& attempt) {
  std::string text = fmt::format("{}: {} on {} ranks, {} micro-batches", run_directory, attempt.start->job,
                                 attempt.start->ranks, attempt.start->micro_batches);
  if (!attempt.parts.empty()) text += fmt::format(", a model in {} parts", attempt.parts.size());
  if (!attempt.end) return text + "; it has not ended\n";
  return text + fmt::format("; {} steps in {}\n", telemetry::grouped(attempt.end->steps),
                            telemetry::duration(attempt.end->seconds));
}

struct Column {
  const char* title;
  const std::optional<ByRank>* seconds;
};

std::string row(const events::End& end, const std::vector<Column>& columns, int rank) {
  const bool computes = end.micro_batches_by_rank.contains(rank);
  std::string text =
      fmt::format("{:>4}  {:>6}", rank, computes ? fmt::format("{}", end.micro_batches_by_rank.at(rank)) : "-");
  for (const auto& [title, seconds] : columns) {
    const bool known = *seconds && (*seconds)->contains(rank);
    text += fmt::format("  {:>{}}", known ? telemetry::duration((*seconds)->at(rank)) : "-",
                        std::string_view(title).size());
  }
  return text + "\n";
}

std::string table(const Attempt& attempt) {
  if (!attempt.end || !attempt.end->waited_seconds_by_rank) return "";
  const events::End& end = *attempt.end;
  std::vector<Column> columns = {
      {"computed", &end.busy_seconds_by_rank},        {"waited: data", &end.data_wait_seconds_by_rank},
      {"waited: ranks", &end.waited_seconds_by_rank}, {"others waited for it", &end.held_up_seconds_by_rank},
      {"reduce", &end.reduce_seconds_by_rank},        {"update", &end.update_seconds_by_rank}};
  const bool in_parts = !attempt.parts.empty();
  if (in_parts) columns.insert(columns.begin() + 2, {"waited: parts", &end.part_wait_seconds_by_rank});
  std::string text = in_parts ? "\npart  rank  micro-batches" : "\nrank  micro-batches";
  for (const auto& column : columns) text += fmt::format("  {}", column.title);
  text += "\n";
  for (const events::Part& part : attempt.parts) {
    for (const int rank : telemetry::ranks_of(part))
      text += fmt::format("{:>4}  ", part.part) + row(end, columns, rank);
  }
  if (in_parts) return text;
  for (const auto& [rank, micro_batches] : end.micro_batches_by_rank) text += row(end, columns, rank);
  return text;
}

/// What the workers of a part did, as fractions of the time until the last rank of all parts has computed its last
/// micro-batch; "" if there are no times.
std::string shares_text(const events::End& end, const events::Part& part) {
  const auto sum = [&](const std::optional<ByRank>& seconds) {
    double total = 0;
    for (const int rank : telemetry::ranks_of(part))
      total += seconds && seconds->contains(rank) ? seconds->at(rank) : 0;
    return total;
  };
  const double computed = sum(end.busy_seconds_by_rank), data = sum(end.data_wait_seconds_by_rank);
  const double parts = sum(end.part_wait_seconds_by_rank), ranks = sum(end.waited_seconds_by_rank);
  const double all = computed + data + parts + ranks;
  if (!(all > 0)) return "";
  return fmt::format("; computed {:.0f} %, waited for data {:.0f} %, for other parts {:.0f} %, for ranks {:.0f} %",
                     100 * computed / all, 100 * data / all, 100 * parts / all, 100 * ranks / all);
}

std::string parts_text(const Attempt& attempt) {
  std::string text;
  for (const events::Part& part : attempt.parts) {
    text += telemetry::part_text(part) + (attempt.end ? shares_text(*attempt.end, part) : "") + "\n";
  }
  return text.empty() ? "" : "\n" + text;
}

std::string move_text(const Attempt& attempt, std::size_t index) {
  const events::Balance& move = attempt.moves[index];
  std::string text = fmt::format("\nafter step {}: {}\n  micro-batches {}; moved {}\n", telemetry::grouped(move.step),
                                 move.reason, numbers(attempt, move.shares_by_rank), move.micro_batches_moved);
  telemetry::Line step("; ");
  if (move.predicted_seconds) {
    text += fmt::format("  seconds per micro-batch {}\n",
                        numbers(attempt, move.micro_batch_seconds_by_rank.value_or(ByRank{})));
    const std::string predicted =
        fmt::format("predicted {} before, {} after", telemetry::duration(*move.predicted_before_seconds),
                    telemetry::duration(*move.predicted_seconds));
    // If the model is cut into parts: how long the slowest of these parts computes; waiting between parts is not
    // included.
    if (!attempt.parts.empty()) {
      text += "  the slowest of them: " + predicted + "\n";
    } else {
      step.add(predicted);
    }
  }
  if (move.measured_seconds) step.add(fmt::format("measured {} before", telemetry::duration(*move.measured_seconds)));
  const bool last = index + 1 == attempt.moves.size();
  const auto end = last ? std::numeric_limits<std::int64_t>::max() : attempt.moves[index + 1].step;
  const double after = measured_seconds(attempt, move.step, end);
  if (after > 0) step.add(fmt::format("measured {} after", telemetry::duration(after)));
  return step.text().empty() ? text : text + "  a step: " + step.text() + "\n";
}

/// The report on the newest attempt in `run_directory`/events.jsonl: who computed and who waited, and each move of
/// shares with its reason, its evidence, what was predicted and what was measured. Throws Error(usage) if there is no
/// such file, or no run of several ranks in it.
std::string balance_report(const std::string& run_directory) {
  const Attempt attempt = read_attempt(run_directory + "/events.jsonl");
  std::string text = head(run_directory, attempt) + parts_text(attempt) + table(attempt);
  if (attempt.moves.empty()) text += "\nno micro-batches were moved\n";
  for (std::size_t i = 0; i < attempt.moves.size(); ++i) text += move_text(attempt, i);
  return text;
}

}  // namespace

void add_balance(CLI::App& program, Action& run) {
  CLI::App* command = program.add_subcommand("balance", "Show how a run's work was divided among its ranks.");
  command->require_subcommand(1);
  command->footer("Example:\n  lockstep balance report runs/digits");
  CLI::App* report = command->add_subcommand(
      "report", "Print what each rank computed and waited for, and every move of micro-batches.");
  report->footer("Example:\n  lockstep balance report runs/digits");
  auto directory = std::make_shared<std::string>();
  report->add_option("RUN_DIRECTORY", *directory, "of a run on several ranks")->required();
  report->callback([&run, directory] {
    run = [directory] {
      fmt::print("{}", balance_report(*directory));
      return 0;
    };
  });
}

}  // namespace lockstep::cli
