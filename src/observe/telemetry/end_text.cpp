// How a run ended, in a few lines: how far, how fast, how good, where the time went, the hash.
#include <fmt/format.h>

#include <algorithm>

#include "observe/telemetry/event_text.hpp"
#include "observe/telemetry/text.hpp"

namespace lockstep::telemetry {
namespace {

/// "done  100 steps, 6,400 samples in 2.04 s: 3,138 samples/s"
std::string first_line(const events::End& end, const Palette& palette, std::int64_t steps) {
  const bool done = end.outcome == "done";
  std::string text = fmt::format("{}{}{}  ", done ? palette.good : palette.strong, end.outcome, palette.reset);
  text += done || steps == 0 ? counted(end.steps, "step")
                             : fmt::format("step {} of {}", grouped(end.steps), grouped(steps));
  text += ", " + counted(end.samples, "sample");
  if (end.seconds > 0) text += " in " + duration(end.seconds);
  return end.samples_per_second > 0 ? fmt::format("{}: {} samples/s", text, short_number(end.samples_per_second))
                                    : text;
}

/// "6.2 s: compute 81 %, reduce 19 %": shares of all phases, the longest first; those below half a percent are skipped.
/// `other`, the time between phases, comes last.
std::string time_text(events::ByName phases) {
  double total = 0;
  for (const auto& [name, value] : phases) total += value;
  if (!(total > 0)) return "";
  const double other = phases.contains("other") ? phases.extract("other").mapped() : 0;
  std::vector<std::pair<std::string, double>> sorted(phases.begin(), phases.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  sorted.emplace_back("other", other);
  Line line(", ");
  for (const auto& [name, value] : sorted) {
    if (value / total >= 0.005) line.add(fmt::format("{} {:.0f} %", spaced(name), 100 * value / total));
  }
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
  const std::string& text() const { return text_; }

 private:
  const Palette& palette_;
  std::string text_;
};

/// What each rank did. A single rank has all micro-batches and sends nothing; bytes by the formula are shown only if
/// they differ from the bytes sent. `lockstep balance report` has the other figures by rank in a table.
void add_ranks(Rows& rows, const events::End& end) {
  using events::Unit;
  if (end.micro_batches_by_rank.size() > 1) {
    rows.add("share", to_text(end.micro_batches_by_rank, Unit::none));
    if (end.share_moves.value_or(0) > 0) rows.add("moves", grouped(*end.share_moves));
    rows.add("computing", to_text(end.compute_seconds_by_rank, Unit::seconds));
    if (end.waited_seconds_by_rank) rows.add("waiting", to_text(*end.waited_seconds_by_rank, Unit::seconds));
    if (end.part_wait_seconds_by_rank) rows.add("parts", to_text(*end.part_wait_seconds_by_rank, Unit::seconds));
    rows.add("sent", to_text(end.bytes_sent_by_rank, Unit::bytes));
    if (end.bytes_by_formula_by_rank != end.bytes_sent_by_rank) {
      rows.add("by formula", to_text(end.bytes_by_formula_by_rank, Unit::bytes));
    }
    if (end.fetched_parameter_bytes_by_rank) {
      rows.add("fetched", to_text(*end.fetched_parameter_bytes_by_rank, Unit::bytes));
    }
  }
  const auto& read = end.bytes_read_by_rank;
  if (std::any_of(read.begin(), read.end(), [](const auto& rank) { return rank.second != 0; })) {
    rows.add("read", to_text(read, Unit::bytes));
  }
}

void add_how_to_resume(Rows& rows, const events::End& end) {
  if (end.outcome != "interrupted") return;
  rows.add("to resume",
           end.checkpoint ? "run the same command again; it resumes from " + *end.checkpoint
                          : "no checkpoint was written (checkpoint: never); another run starts from the beginning",
           false);
}

}  // namespace

std::string end_text(const events::End& end, const Palette& palette, std::int64_t steps) {
  using events::Unit;
  const bool nothing_to_do = end.outcome == "already finished";
  std::string text = nothing_to_do ? fmt::format("{}already finished{} at step {}: nothing to do", palette.good,
                                                 palette.reset, grouped(end.steps))
                                   : first_line(end, palette, steps);
  Rows rows(palette);
  rows.add("validation", metrics_text(end.metrics), false);
  if (end.best) {
    const std::string since = counted(end.evaluations_since_best.value_or(0), "evaluation");
    rows.add("best", fmt::format("{}, {} before", metrics_text(*end.best), since), false);
  }
  if (end.metrics.empty() && end.loss) rows.add("last step", "loss " + fixed_number(*end.loss), false);
  if (!nothing_to_do) rows.add("time", time_text(end.phases));
  add_ranks(rows, end);
  add_how_to_resume(rows, end);
  rows.add("prefetch", to_text(end.prefetch, Unit::none));
  rows.add("cache", to_text(end.sample_cache_bytes, Unit::bytes));
  if (end.checkpoints_failed) rows.add("checkpoints failed", grouped(*end.checkpoints_failed));
  if (end.energy_joules_by_rank) rows.add("energy (J)", to_text(*end.energy_joules_by_rank, Unit::joules));
  return fmt::format("{}{}\n  parameters sha256: {}", text, rows.text(), end.parameters_sha256);
}

}  // namespace lockstep::telemetry
