// lockstep report: a run, or a sweep, as one HTML page.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>

#include "cli/commands.hpp"
#include "cli/details_page.hpp"
#include "cli/event_series.hpp"
#include "cli/report_page.hpp"
#include "cli/run_events.hpp"
#include "cli/runs_report.hpp"
#include "cli/svg_chart.hpp"
#include "cli/sweep_report.hpp"
#include "core/errno_code.hpp"
#include "core/files.hpp"
#include "lockstep/error.hpp"
#include "observe/telemetry/diagnosis.hpp"
#include "observe/telemetry/event_schema.hpp"
#include "observe/telemetry/event_text.hpp"
#include "observe/telemetry/text.hpp"

namespace lockstep::cli {

namespace {

constexpr double kHour = 3600;

using Points = std::vector<std::pair<double, double>>;

/// One curve for each name or rank in `values`, named with `prefix` before it.
template <class Event, class Values>
std::vector<Series> all_series(const std::string& prefix, const std::vector<Event>& events, Values values) {
  std::map<typename std::remove_cvref_t<decltype(values(events.front()))>::key_type, Points> all;
  for (const Event& event : events) {
    for (const auto& [key, value] : values(event)) all[key].emplace_back(static_cast<double>(event.step), value);
  }
  std::vector<Series> list;
  for (auto& [key, points] : all) list.push_back({prefix + telemetry::spaced(fmt::format("{}", key)), points});
  return list;
}

std::string number_tile(double value, const std::string& name) {
  return tile(telemetry::fixed_number(value), name);
}

/// Of the last evaluation, and of the best one if that is another.
std::string evaluation_tiles(const RunEvents& run) {
  std::string text;
  const events::Evaluation& last = run.evals.back();
  const auto add = [&](const std::string& name, double value) {
    const std::string title = "validation " + telemetry::spaced(name);
    text += number_tile(value, title);
    const auto best = best_evaluation(run, name);
    if (!best || best->step == last.step) return;
    text += number_tile(best->value, fmt::format("best {}, at step {}", title, telemetry::grouped(best->step)));
  };
  add("loss", last.loss);
  for (const auto& [name, value] : last.metrics) add(name, value);
  return text;
}

/// For runs in fp16: the number of steps that were skipped because gradients overflowed.
std::string skipped_tile(const RunEvents& run) {
  if (run.steps.empty() || !run.steps.back().loss_scale) return "";
  return tile(telemetry::grouped(run.skipped.size()), "skipped updates, whose gradient overflowed");
}

std::int64_t last_step(const RunEvents& run) {
  return run.steps.empty() ? 0 : run.steps.back().step;
}

std::string tiles(const RunEvents& run) {
  std::string steps = telemetry::grouped(last_step(run));
  if (run.start.steps > 0) steps += " / " + telemetry::grouped(run.start.steps);
  std::string text = tile(steps, "steps");
  if (!run.steps.empty()) text += number_tile(run.steps.back().loss, "loss of the last step");
  text += skipped_tile(run);
  if (!run.evals.empty()) text += evaluation_tiles(run);
  if (!run.steps.empty()) text += tile(telemetry::short_number(run.steps.back().samples_per_second), "samples/s");
  text += tile(telemetry::grouped(run.start.ranks), "ranks");
  text += tile(fmt::format("{:.3g}", run.rank_seconds / kHour), "device-hours (a rank is a device)");
  if (!run.metered.empty()) text += tile(fmt::format("{:.3g}", run.joules / kHour), "Wh, used by GPUs");
  return "<div class=\"tiles\">" + text + "</div>\n";
}

/// Of the evaluations, with a ring around the best one of a metric, unless it is the only one.
Series validation_series(const RunEvents& run, const std::string& name, const std::string& metric) {
  Series series =
      event_series(name, run.evals, [&](const events::Evaluation& eval) { return value_of_evaluation(eval, metric); });
  const auto best = best_evaluation(run, metric);
  if (best && series.points.size() > 1) series.best = {static_cast<double>(best->step), best->value};
  return series;
}

std::string curves(const RunEvents& run) {
  using events::Step;
  const auto of_steps = [&](const std::string& name, auto field) { return event_series(name, run.steps, field); };
  Series loss = of_steps("training", [](const Step& step) { return std::optional(step.loss); });
  loss.smoothed = true;
  auto metrics = all_series("training ", run.steps, [](const Step& step) { return step.metrics; });
  for (Series& one : metrics) one.smoothed = true;
  std::set<std::string> evaluated;
  for (const events::Evaluation& eval : run.evals) {
    for (const auto& [name, value] : eval.metrics) evaluated.insert(name);
  }
  for (const std::string& name : evaluated) {
    metrics.push_back(validation_series(run, "validation " + telemetry::spaced(name), name));
  }
  std::string text = line_chart("Loss", "step", {loss, validation_series(run, "validation", "loss")});
  text += line_chart("Metrics", "step", std::move(metrics));
  text += line_chart("Learning rate", "step",
                     {of_steps("learning rate", [](const Step& step) { return step.learning_rate; })});
  text +=
      line_chart("Loss scale (fp16)", "step", {of_steps("scale", [](const Step& step) { return step.loss_scale; })});
  text += line_chart("Samples per second, since the start", "step",
                     {of_steps("samples/s", [](const Step& step) { return step.samples_per_second; })});
  const Series waiting = of_steps("rank 0", [](const Step& step) { return step.data_wait_seconds; });
  const auto waits = [](const auto& point) { return point.second > 0; };
  if (std::any_of(waiting.points.begin(), waiting.points.end(), waits)) {
    text += line_chart("Waiting for data, seconds per step", "step", {waiting});
  }
  return text.empty() ? "" : "<h2>Curves</h2>\n<div class=\"charts\">" + text + "</div>\n";
}

/// The part of the model on each rank at the newest start; empty if the model is whole.
std::map<int, std::int64_t> part_of_ranks(const RunEvents& run) {
  std::map<int, std::int64_t> parts;
  for (const auto& other : run.others) {
    if (std::holds_alternative<events::Start>(*other.event)) parts.clear();
    const auto* const part = std::get_if<events::Part>(&*other.event);
    if (part == nullptr) continue;
    for (const int rank : telemetry::ranks_of(*part)) parts[rank] = part->part;
  }
  return parts;
}

/// A column for each field by rank, and a row for each rank.
std::string rank_table(const events::End& end, const std::map<int, std::int64_t>& parts) {
  constexpr std::string_view kByRank = "_by_rank";
  std::string head = parts.empty() ? "<th>rank</th>" : "<th>rank</th><th class=\"n\">part</th>";
  std::map<int, std::string> rows;
  for (const auto& [rank, part] : parts) rows[rank] = fmt::format("<td class=\"n\">{}</td>", part);
  telemetry::for_each_field(end, [&](std::string_view name, const auto& field, events::Unit unit) {
    const auto add = [&](const events::ByRank& values) {
      const std::string title(name.substr(0, name.size() - kByRank.size()));
      head += fmt::format("<th class=\"n\">{}</th>", telemetry::spaced(title));
      for (const auto& [rank, value] : values) {
        rows[rank] += fmt::format("<td class=\"n\">{}</td>", telemetry::to_text(value, unit));
      }
    };
    using Field = std::remove_cvref_t<decltype(field)>;
    if constexpr (std::is_same_v<Field, events::ByRank>) add(field);
    if constexpr (std::is_same_v<Field, std::optional<events::ByRank>>) {
      if (field) add(*field);
    }
  });
  std::string body;
  for (const auto& [rank, cells] : rows) body += fmt::format("<tr><td>{}</td>{}</tr>", rank, cells);
  return body.empty() ? "" : fmt::format("<div class=\"card\"><table><tr>{}</tr>{}</table></div>\n", head, body);
}

/// Whether `step` events have a value for each rank, not only for some.
bool reports_all_ranks(const RunEvents& run) {
  return run.start.ranks <= static_cast<std::int64_t>(events::Step::kMostRanks);
}

/// A step curve: each value holds until the next one, and the last until `end`.
Points stairs(const Points& points, double end) {
  Points all;
  for (const auto& [at, value] : points) {
    if (!all.empty()) all.emplace_back(at, all.back().second);
    all.emplace_back(at, value);
  }
  if (!all.empty()) all.emplace_back(std::max(end, all.back().first), all.back().second);
  return all;
}

std::string ranks(const RunEvents& run) {
  std::vector<events::Balance> moves;
  for (const auto& other : run.others) {
    const auto* const move = std::get_if<events::Balance>(&*other.event);
    if (move == nullptr) continue;
    // Those of steps that a later start has repeated are void.
    std::erase_if(moves, [&](const events::Balance& earlier) { return earlier.step >= move->step; });
    moves.push_back(*move);
  }
  const auto seconds =
      reports_all_ranks(run)
          ? all_series("rank ", run.steps,
                       [](const events::Step& step) { return step.micro_batch_seconds.value_or(events::ByRank{}); })
          : all_series("", run.steps, [](const events::Step& step) {
              return step.micro_batch_seconds_of_all.value_or(events::ByName{});
            });
  std::string charts = line_chart("Seconds per micro-batch", "step", seconds);
  auto micro_batches = all_series("rank ", moves, [](const events::Balance& move) { return move.shares_by_rank; });
  for (Series& series : micro_batches) series.points = stairs(series.points, last_step(run));
  charts += line_chart("Micro-batches of each rank, since the first move", "step", std::move(micro_batches));
  if (!charts.empty()) charts = "<div class=\"charts\">" + charts + "</div>\n";
  const std::string table = run.end ? rank_table(*run.end, part_of_ranks(run)) : "";
  return charts.empty() && table.empty() ? "" : "<h2>Ranks and balance</h2>\n" + charts + "<p></p>" + table;
}

std::string phases(const events::End& end) {
  if (end.phases.empty()) return "";
  std::vector<std::pair<double, std::string>> sorted;
  double total = 0;
  for (const auto& [name, seconds] : end.phases) {
    sorted.emplace_back(seconds, name);
    total += seconds;
  }
  std::sort(sorted.rbegin(), sorted.rend());
  std::string bar, keys;
  for (std::size_t i = 0; i < sorted.size() && total > 0; ++i) {
    const auto& [seconds, name] = sorted[i];
    bar += fmt::format("<i class=\"s{}\" style=\"width:{:.2f}%\"></i>", i % 8, 100 * seconds / total);
    keys += fmt::format("<span class=\"key\"><i class=\"s{}\"></i>{} {}</span> ", i % 8, telemetry::spaced(name),
                        telemetry::duration(seconds));
  }
  return fmt::format(
      "<h2>Time of rank 0</h2>\n<div class=\"card\"><div class=\"bar\">{}</div><figcaption>{}"
      "</figcaption></div>\n",
      bar, keys);
}

/// What took the time since the first start, over all restarts.
std::string run_time(const RunEvents& run) {
  if (!run.goodput) return "";
  double total = 0;
  const auto each = [&](auto visit) {
    telemetry::for_each_field(*run.goodput, [&](const std::string& name, const auto& value, events::Unit unit) {
      if (unit == events::Unit::seconds) visit(name.substr(0, name.rfind('_')), static_cast<double>(value));
    });
  };
  each([&](const std::string&, double seconds) { total += seconds; });
  if (total <= 0) return "";
  std::string rows;
  each([&](const std::string& name, double seconds) {
    rows += fmt::format("<tr><td>{}</td><td class=\"n\">{:.2f} %</td><td class=\"n\">{}</td></tr>",
                        telemetry::spaced(name), 100 * seconds / total, telemetry::clock_time(seconds));
  });
  return "<h2>Goodput</h2>\n<div class=\"card\"><table><tr><th>time</th><th class=\"n\">share</th><th></th></tr>" +
         rows + "</table></div>\n";
}

std::string event_table(const RunEvents& run) {
  std::string rows;
  const double began = run.others.empty() ? 0 : run.others.front().time;
  for (const auto& other : run.others) {
    if (std::holds_alternative<events::Start>(*other.event)) continue;
    rows += fmt::format("<tr><td class=\"n\">{}</td><td>{}</td><td><pre>{}</pre></td></tr>",
                        telemetry::clock_time(other.time - began), other.name,
                        escaped(telemetry::event_text(*other.event, {})));
  }
  if (rows.empty()) return "";
  return "<h2>Events</h2>\n<div class=\"card\"><table><tr><th class=\"n\">after</th><th>event</th><th></th></tr>" +
         rows + "</table></div>\n";
}

/// "12.3 Wh, of the GPUs of ranks 0, 1"
std::string energy(const RunEvents& run) {
  if (run.metered.empty()) return "not measured";
  if (!reports_all_ranks(run)) return fmt::format("{:.3g} Wh, of the ranks' GPUs", run.joules / kHour);
  return fmt::format("{:.3g} Wh, of the GPU{} of rank{} {}", run.joules / kHour, run.metered.size() == 1 ? "" : "s",
                     run.metered.size() == 1 ? "" : "s", fmt::join(run.metered, ", "));
}

std::string environment(const RunEvents& run) {
  std::string rows;
  const auto row = [&](const char* name, const auto& value) {
    rows += fmt::format("<tr><th>{}</th><td>{}</td></tr>", name, escaped(fmt::format("{}", value)));
  };
  const events::Start& start = run.start;
  row("device", start.device);
  row("ranks", start.ranks);
  row("hosts", start.hosts);
  row("threads", start.threads);
  row("micro-batches", start.micro_batches);
  row("batch size", start.batch_size);
  row("parameters", start.parameters);
  row("samples", start.samples);
  row("validation samples", start.validation_samples);
  row("exactness", start.exactness);
  row("fingerprint", start.fingerprint);
  row("version", start.version);
  if (start.plugins) row("plugins", *start.plugins);
  row("energy", energy(run));
  return "<h2>Environment</h2>\n<div class=\"card\"><table>" + rows + "</table></div>\n";
}

std::string configuration(const std::string& run_directory) {
  const auto job = stored_job(run_directory);
  if (!job) return "";
  return "<h2>Configuration</h2>\n<div class=\"card\"><details><summary>the whole job, with every "
         "default</summary><pre>" +
         escaped(*job) + "</pre></details></div>\n";
}

/// What `lockstep trace merge` found for some steps.
std::string timeline(const std::string& run_directory) {
  const std::string folder = run_directory + "/trace";
  const auto verdict = read_whole_file(telemetry::diagnosis_path(folder));
  if (!verdict) return "";
  return fmt::format(
      "<h2>What the steps waited for</h2>\n<div class=\"card\">{}<p class=\"about\">The timeline is {}/merged.json; "
      "Perfetto opens it.</p></div>\n",
      escaped(*verdict), escaped(folder));
}

/// What `lockstep eval --details` has left.
std::string evaluations(const std::string& run_directory) {
  std::string text;
  for (const char* set : {"validation", "test", "train"}) {
    if (const auto details = read_details(run_directory, set)) text += details_section(*details);
  }
  return text;
}

std::string report_page(const std::string& run_directory, const RunEvents& run) {
  const std::string outcome = run.end ? run.end->outcome : "still running, or died";
  std::string body = tiles(run) + curves(run) + evaluations(run_directory) + ranks(run) + run_time(run) +
                     (run.end ? phases(*run.end) : "") + timeline(run_directory) + event_table(run) + environment(run) +
                     configuration(run_directory);
  if (run.end) body += fmt::format("<p class=\"about\">parameters sha256: {}</p>\n", run.end->parameters_sha256);
  return page_of(run.start.job, outcome + "; " + run_directory, body);
}

std::string page_of_one(const std::string& directory) {
  return is_sweep(directory) ? sweep_report_page(directory) : report_page(directory, read_run_events(directory));
}

int write_report(const std::vector<std::string>& directories, const std::string& output) {
  const bool one = directories.size() == 1;
  const std::string page = one ? page_of_one(directories.front()) : runs_report_page(directories);
  const std::string path = !output.empty() ? output : one ? directories.front() + "/report.html" : "report.html";
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  if (!(file << page).flush()) {
    const int error = errno;
    throw Error(code_of_errno(error, ExitCode::cannot_create),
                fmt::format("{}: cannot write the report: {}", path, std::strerror(error)));
  }
  fmt::print("{}\n", path);
  return 0;
}

}  // namespace

void add_report(CLI::App& program, Action& run) {
  CLI::App* command =
      program.add_subcommand("report", "Write a report on runs, or a sweep, as one self-contained HTML page.");
  command->footer(
      "Examples:\n  lockstep report runs/digits\n  lockstep report runs/a runs/b --output a-and-b.html\n  lockstep "
      "report "
      "sweeps/digits-sweep");
  auto directories = std::make_shared<std::vector<std::string>>();
  auto output = std::make_shared<std::string>();
  command->add_option("DIRECTORY", *directories, "of a run that has started, or of a sweep; several runs are compared")
      ->required();
  command->add_option("--output", *output,
                      "the page; by default report.html in the directory, or in this one if there are several");
  command->callback(
      [&run, directories, output] { run = [directories, output] { return write_report(*directories, *output); }; });
}

}  // namespace lockstep::cli
