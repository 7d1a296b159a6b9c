// How a run ended, in a few lines: how far and how fast, how good, where the time went, the hash.
#include <fmt/format.h>

#include <algorithm>

#include "telemetry/event_fields.hpp"
#include "telemetry/event_text.hpp"
#include "telemetry/text.hpp"

namespace lockstep::telemetry {
namespace {

using Map = std::map<std::string, double>;

/// "done  100 steps, 6,400 samples in 2.04 s: 3,138 samples/s"
std::string first_line(Fields& fields, const std::string& outcome, const Palette& palette, double steps) {
  const bool done = outcome.empty() || outcome == "done";
  std::string count = fields.take("steps");
  if (outcome == "already finished") {
    for (const char* name : {"samples", "seconds", "samples_per_second", "phases"}) fields.drop(name);
    return fmt::format("{}already finished{} at step {}: nothing to do", palette.good, palette.reset, count);
  }
  Line line(", ");
  if (!done && steps > 0) {
    line.add(fmt::format("step {} of {}", count, grouped(static_cast<std::int64_t>(steps))));
  } else if (!count.empty()) {
    line.add(counted(count, "step"));
  }
  if (fields.has("samples")) line.add(counted(fields.take("samples"), "sample"));
  std::string text = fmt::format("{}{}{}  {}", done ? palette.good : palette.strong, done ? "done" : outcome,
                                 palette.reset, line.text());
  const double seconds = number(fields.left(), "seconds");
  if (seconds > 0) text += " in " + duration(seconds);
  const double rate = fields.take_number("samples_per_second");
  return rate > 0 ? fmt::format("{}: {} samples/s", text, short_number(rate)) : text;
}

/// "6.2 s: compute 81 %, exchange 19 %": shares of all phases, the longest first; below half a percent left out.
/// `other`, what lies between the phases, comes last.
std::string time_text(Map phases) {
  double total = 0;
  for (const auto& [name, value] : phases) total += value;
  if (!(total > 0)) return "";
  const double other = phases.contains("other") ? phases.extract("other").mapped() : 0;
  std::vector<std::pair<std::string, double>> sorted(phases.begin(), phases.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  Line line(", ");
  for (const auto& [name, value] : sorted) {
    if (value / total >= 0.005) line.add(fmt::format("{} {:.0f} %", spaced(name), 100 * value / total));
  }
  if (other / total >= 0.005) line.add(fmt::format("other {:.0f} %", 100 * other / total));
  return fmt::format("{}: {}", duration(total), line.text());
}

/// Rows of "name  values", in the order in which they are added.
class Rows {
 public:
  explicit Rows(const Palette& palette) : palette_(palette) {}
  void add(const std::string& name, const std::string& value, bool quiet = true) {
    if (value.empty()) return;
    text_ += fmt::format("\n  {}{:<10}  {}{}", quiet ? palette_.quiet : "", name, value, quiet ? palette_.reset : "");
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  const Palette& palette_;
  std::string text_;
};

/// What each rank did. One rank alone has all shards and sends nothing; bytes by the formula are news only where they
/// are not those that were sent.
void add_ranks(Rows& rows, Fields& fields) {
  const auto values = [&](const char* name) {
    const Field* field = find(fields.left(), name);
    const auto* map = field == nullptr ? nullptr : std::get_if<Map>(field);
    return map == nullptr ? Map{} : *map;
  };
  const bool several = values("shards_by_rank").size() > 1;
  const auto read = values("bytes_read_by_rank");
  if (std::all_of(read.begin(), read.end(), [](const auto& entry) { return entry.second == 0; })) {
    fields.drop("bytes_read_by_rank");
  }
  if (!several || values("bytes_by_formula_by_rank") == values("bytes_sent_by_rank")) {
    fields.drop("bytes_by_formula_by_rank");
  }
  if (!several) {
    for (const char* name : {"shards_by_rank", "bytes_sent_by_rank", "compute_seconds_by_rank"}) fields.drop(name);
  }
  // `lockstep balance report` has these in a table.
  for (const char* name : {"busy_seconds_by_rank", "data_wait_seconds_by_rank", "held_up_seconds_by_rank",
                           "exchange_seconds_by_rank", "update_seconds_by_rank"}) {
    fields.drop(name);
  }
  if (number(fields.left(), "share_moves") == 0) fields.drop("share_moves");
  rows.add("shards", fields.take("shards_by_rank"));
  rows.add("moves", fields.take("share_moves"));
  rows.add("computing", fields.take("compute_seconds_by_rank"));
  rows.add("waiting", fields.take("waited_seconds_by_rank"));
  rows.add("sent", fields.take("bytes_sent_by_rank"));
  rows.add("by formula", fields.take("bytes_by_formula_by_rank"));
  rows.add("read", fields.take("bytes_read_by_rank"));
}

}  // namespace

std::string end_text(const Record& record, const Palette& palette, double steps) {
  Fields fields(record);
  const std::string outcome = fields.take("outcome");
  const std::string digest = fields.take("parameters_sha256");
  const std::string checkpoint = fields.take("checkpoint");
  std::string text = first_line(fields, outcome, palette, steps);
  fields.drop("interrupted");

  Rows rows(palette);
  Line metrics;
  metrics.add_metrics(fields.take_map("metrics"));
  rows.add("validation", metrics.text(), false);
  if (metrics.empty() && fields.has("loss")) {
    rows.add("last step", "loss " + fixed_number(number(fields.left(), "loss")), false);
  }
  fields.drop("loss");
  rows.add("time", time_text(fields.take_map("phases")));
  fields.drop("seconds");
  add_ranks(rows, fields);
  if (outcome == "interrupted") {
    rows.add("to go on",
             checkpoint.empty() ? "nothing was kept (checkpoint: never); another run begins anew"
                                : "run the same command again; it resumes from " + checkpoint,
             false);
  }
  for (const auto& [name, field] : fields.left()) rows.add(spaced(name), to_text(name, field));
  text += rows.text();
  return digest.empty() ? text : text + "\n  parameters sha256: " + digest;
}

}  // namespace lockstep::telemetry
