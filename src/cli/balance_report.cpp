#include "cli/balance_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "core/median.hpp"
#include "core/untrusted.hpp"
#include "lockstep/error.hpp"
#include "telemetry/text.hpp"

namespace lockstep::cli {

namespace {

using Json = nlohmann::json;

constexpr std::size_t kSettling = 2;  // steps after a move that its measured time leaves out

struct Attempt {
  std::optional<Json> start, end;
  std::vector<Json> moves, steps;
};

// What the report reads of an event. Other fields may be anything.
enum class Kind : std::uint8_t { text, integer, number, by_rank };
struct Field {
  const char *event, *name;
  Kind kind;
};
constexpr std::array kFields = {Field{"start", "job", Kind::text},
                                Field{"start", "ranks", Kind::integer},
                                Field{"start", "shards", Kind::integer},
                                Field{"step", "step", Kind::integer},
                                Field{"step", "seconds", Kind::number},
                                Field{"balance", "step", Kind::integer},
                                Field{"balance", "reason", Kind::text},
                                Field{"balance", "shards_moved", Kind::integer},
                                Field{"balance", "shares_by_rank", Kind::by_rank},
                                Field{"balance", "shard_seconds_by_rank", Kind::by_rank},
                                Field{"balance", "predicted_before_seconds", Kind::number},
                                Field{"balance", "predicted_seconds", Kind::number},
                                Field{"balance", "measured_seconds", Kind::number},
                                Field{"end", "steps", Kind::integer},
                                Field{"end", "seconds", Kind::number},
                                Field{"end", "shards_by_rank", Kind::by_rank},
                                Field{"end", "busy_seconds_by_rank", Kind::by_rank},
                                Field{"end", "data_wait_seconds_by_rank", Kind::by_rank},
                                Field{"end", "waited_seconds_by_rank", Kind::by_rank},
                                Field{"end", "held_up_seconds_by_rank", Kind::by_rank},
                                Field{"end", "exchange_seconds_by_rank", Kind::by_rank},
                                Field{"end", "update_seconds_by_rank", Kind::by_rank}};

bool is_by_rank(const Json& map) {
  if (!map.is_object()) return false;
  for (const auto& [rank, value] : map.items()) {
    const bool numbered = !rank.empty() && rank.size() <= 9 && rank.find_first_not_of("0123456789") == rank.npos;
    if (!numbered || !value.is_number()) return false;
  }
  return true;
}

// What is wrong with an event, as far as the report reads it; empty: nothing.
std::string damage_of(const Json& event) {
  for (const auto& [name, field, kind] : kFields) {
    if (event["event"] != name || !event.contains(field)) continue;
    const Json& value = event[field];
    if (kind == Kind::text && !value.is_string()) return fmt::format("expected a text as '{}'", field);
    if (kind == Kind::integer && !value.is_number_integer()) return fmt::format("expected an integer as '{}'", field);
    if (kind == Kind::number && !value.is_number()) return fmt::format("expected a number as '{}'", field);
    if (kind == Kind::by_rank && !is_by_rank(value)) return fmt::format("expected numbers by rank as '{}'", field);
  }
  const bool half = event.contains("predicted_seconds") != event.contains("predicted_before_seconds");
  return event["event"] == "balance" && half ? "expected 'predicted_before_seconds' with 'predicted_seconds'" : "";
}

// The newest attempt: what came after the last `start`, and the first shares, which are told just before it.
Attempt read_attempt(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    throw Error(ExitCode::usage,
                fmt::format("{}: expected the events of a run, found no such file; name a run directory "
                            "of a run that has started",
                            path));
  }
  Attempt attempt;
  std::vector<Json> early;  // moves since the last step or end
  std::size_t number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    auto event = nests_too_deep(line) ? Json() : Json::parse(line, nullptr, false);
    // Torn, of a run that was killed; or of another program.
    if (!event.is_object() || !event.value("event", Json()).is_string()) continue;
    const std::string name = event["event"];
    if (const std::string damage = damage_of(event); !damage.empty()) {
      throw Error(ExitCode::data,
                  fmt::format("{}:{}: the event '{}' is damaged: {}; delete the line", path, number, name, damage));
    }
    if (name == "start") {
      attempt = {.start = std::move(event), .end = std::nullopt, .moves = std::move(early), .steps = {}};
      early = {};
    } else if (name == "balance") {
      attempt.moves.push_back(event);
      early.push_back(std::move(event));
    } else if (name == "step") {
      attempt.steps.push_back(std::move(event));
      early.clear();
    } else if (name == "end") {
      attempt.end = std::move(event);
      early.clear();
    }
  }
  if (!attempt.start || attempt.start->value("ranks", 1) < 2) {
    throw Error(ExitCode::usage,
                fmt::format("{}: expected a run on several ranks, found {}; one rank has nothing to balance", path,
                            attempt.start ? "one rank" : "no run"));
  }
  return attempt;
}

// {"0": a, "1": b, "10": c} in order of the ranks.
std::vector<double> by_rank(const Json& event, const char* name) {
  std::vector<std::pair<int, double>> sorted;
  if (!event.is_object() || !event.contains(name)) return {};
  for (const auto& [rank, value] : event[name].items()) sorted.emplace_back(std::stoi(rank), value.get<double>());
  std::sort(sorted.begin(), sorted.end());
  std::vector<double> values;
  for (const auto& [rank, value] : sorted) values.push_back(value);
  return values;
}

std::string numbers(const std::vector<double>& values) {
  std::vector<std::string> texts;
  for (const double value : values) texts.push_back(telemetry::short_number(value));
  return fmt::format("{}", fmt::join(texts, " "));
}

// Median seconds of the steps that came between two moves.
double measured_seconds(const Attempt& attempt, std::int64_t from, std::int64_t end) {
  std::vector<double> seconds;
  for (std::size_t i = 1; i < attempt.steps.size(); ++i) {
    const auto step = attempt.steps[i].value("step", std::int64_t{0});
    if (step <= from + static_cast<std::int64_t>(kSettling) || step > end) continue;
    seconds.push_back(attempt.steps[i].value("seconds", 0.0) - attempt.steps[i - 1].value("seconds", 0.0));
  }
  return median(std::move(seconds));
}

std::string head(const std::string& run_directory, const Attempt& attempt) {
  const Json& start = *attempt.start;
  std::string text = fmt::format("{}: {} on {} ranks, {} shards", run_directory, start.value("job", ""),
                                 start.value("ranks", 0), start.value("shards", 0));
  if (!attempt.end) return text + "; it has not ended\n";
  return text + fmt::format("; {} steps in {}\n", telemetry::grouped(attempt.end->value("steps", std::int64_t{0})),
                            telemetry::duration(attempt.end->value("seconds", 0.0)));
}

std::string table(const Attempt& attempt) {
  if (!attempt.end || !attempt.end->contains("waited_seconds_by_rank")) return "";
  struct Column {
    const char *title, *field;
  };
  const std::vector<Column> columns = {
      {"computed", "busy_seconds_by_rank"},        {"waited: data", "data_wait_seconds_by_rank"},
      {"waited: ranks", "waited_seconds_by_rank"}, {"others waited for it", "held_up_seconds_by_rank"},
      {"exchange", "exchange_seconds_by_rank"},    {"update", "update_seconds_by_rank"}};
  std::string text = "\nrank  shards";
  for (const auto& column : columns) text += fmt::format("  {}", column.title);
  text += "\n";
  const auto shards = by_rank(*attempt.end, "shards_by_rank");
  for (std::size_t r = 0; r < shards.size(); ++r) {
    text += fmt::format("{:>4}  {:>6}", r, shards[r]);
    for (const auto& column : columns) {
      const auto values = by_rank(*attempt.end, column.field);
      const std::string value = r < values.size() ? telemetry::duration(values[r]) : "-";
      text += fmt::format("  {:>{}}", value, std::string_view(column.title).size());
    }
    text += "\n";
  }
  return text;
}

std::string move_text(const Attempt& attempt, std::size_t index) {
  const Json& move = attempt.moves[index];
  const auto step = move.value("step", std::int64_t{0});
  std::string text =
      fmt::format("\nafter step {}: {}\n  shares {}; moved {}\n", telemetry::grouped(step), move.value("reason", ""),
                  numbers(by_rank(move, "shares_by_rank")), move.value("shards_moved", 0));
  if (move.contains("predicted_seconds")) {
    text += fmt::format("  seconds a shard {}\n", numbers(by_rank(move, "shard_seconds_by_rank")));
    text +=
        fmt::format("  a step: predicted {} before, {} after", telemetry::duration(move["predicted_before_seconds"]),
                    telemetry::duration(move["predicted_seconds"]));
  } else {
    text += "  a step:";
  }
  if (move.contains("measured_seconds")) {
    text += fmt::format("; measured {} before", telemetry::duration(move["measured_seconds"]));
  }
  const bool last = index + 1 == attempt.moves.size();
  const auto end = last ? std::numeric_limits<std::int64_t>::max() : attempt.moves[index + 1].value("step", step);
  const double after = measured_seconds(attempt, step, end);
  return text + (after > 0 ? fmt::format("; measured {} after\n", telemetry::duration(after)) : "\n");
}

}  // namespace

std::string balance_report(const std::string& run_directory) {
  const Attempt attempt = read_attempt(run_directory + "/events.jsonl");
  std::string text = head(run_directory, attempt) + table(attempt);
  if (attempt.moves.empty()) text += "\nno shares were moved\n";
  for (std::size_t i = 0; i < attempt.moves.size(); ++i) text += move_text(attempt, i);
  return text;
}

}  // namespace lockstep::cli
