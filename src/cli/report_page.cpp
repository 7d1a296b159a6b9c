#include "cli/report_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "checkpoint/checkpoint.hpp"
#include "cli/report_style.hpp"
#include "cli/svg_chart.hpp"
#include "core/whole_file.hpp"
#include "telemetry/diagnosis.hpp"
#include "telemetry/event_log.hpp"
#include "telemetry/event_text.hpp"
#include "telemetry/text.hpp"

namespace lockstep::cli {

namespace {

constexpr double kHour = 3600;

double number_of(const EventJson& event, const std::string& name, double fallback = 0) {
  return event.is_object() && event.contains(name) && event[name].is_number() ? event[name].get<double>() : fallback;
}

std::string text_of(const EventJson& event, const std::string& name, const std::string& fallback = "") {
  return event.is_object() && event.contains(name) && event[name].is_string() ? event[name].get<std::string>()
                                                                              : fallback;
}

Series series_of(const std::string& name, const std::vector<EventJson>& events, const std::string& field) {
  Series series{name, {}};
  for (const EventJson& event : events) {
    if (event.contains(field)) series.points.emplace_back(number_of(event, "step"), number_of(event, field, NAN));
  }
  return series;
}

/// A line for each key of a map of the events: "metrics", "shard_seconds". `prefix` goes before the key.
std::vector<Series> map_series(const std::string& prefix, const std::vector<EventJson>& events, const char* field) {
  std::map<std::string, Series> all;
  for (const EventJson& event : events) {
    if (!event.contains(field) || !event[field].is_object()) continue;
    for (const auto& [key, value] : event[field].items()) {
      all[key].points.emplace_back(number_of(event, "step"), value.is_number() ? value.get<double>() : NAN);
    }
  }
  std::vector<Series> list;
  for (auto& [key, series] : all) list.push_back({prefix + telemetry::spaced(key), std::move(series.points)});
  return list;
}

std::string tile(const std::string& value, const std::string& name) {
  return value.empty() ? "" : fmt::format("<div class=\"tile\"><b>{}</b><span>{}</span></div>\n", escaped(value), name);
}

/// Of a number that the event has.
std::string tile_of(const EventJson& event, const char* field, const std::string& name) {
  return event.contains(field) ? tile(telemetry::fixed_number(number_of(event, field, NAN)), name) : "";
}

std::string evaluation_tiles(const EventJson& eval) {
  std::string text = tile_of(eval, "loss", "validation loss");
  if (!eval.contains("metrics")) return text;
  for (const auto& [name, value] : eval["metrics"].items()) {
    text += tile_of(eval["metrics"], name.c_str(), "validation " + escaped(telemetry::spaced(name)));
  }
  return text;
}

/// What was told last of the steps.
const EventJson& last_of(const RunEvents& run) {
  return run.steps.empty() ? run.start : run.steps.back();
}

/// Of a run in fp16: how many of its steps changed nothing, since gradients overflowed.
std::string left_out_tile(const RunEvents& run) {
  if (!last_of(run).contains("loss_scale")) return "";
  const auto left_out = std::count_if(run.steps.begin(), run.steps.end(),
                                      [](const EventJson& step) { return step.value("left_out", false); });
  return tile(telemetry::grouped(left_out), "updates left out, whose gradient overflowed");
}

std::string tiles(const RunEvents& run) {
  const EventJson& last = last_of(run);
  std::string steps = telemetry::grouped(std::llround(number_of(last, "step")));
  if (run.start.contains("steps")) {
    steps += " / " + telemetry::grouped(std::llround(number_of(run.start, "steps")));
  }
  std::string text = tile(steps, "steps") + tile_of(last, "loss", "loss of the last step") + left_out_tile(run);
  if (!run.evals.empty()) text += evaluation_tiles(run.evals.back());
  if (last.contains("samples_per_second")) {
    text += tile(telemetry::short_number(number_of(last, "samples_per_second")), "samples/s");
  }
  text += tile(telemetry::grouped(std::llround(number_of(run.start, "ranks", 1))), "ranks");
  text += tile(fmt::format("{:.3g}", run.rank_seconds / kHour), "device-hours (a rank is a device)");
  if (!run.metered.empty()) text += tile(fmt::format("{:.3g}", run.joules / kHour), "Wh, drawn by GPUs");
  return "<div class=\"tiles\">" + text + "</div>\n";
}

std::string curves(const RunEvents& run) {
  std::vector<Series> metrics = map_series("training ", run.steps, "metrics");
  for (Series& series : map_series("validation ", run.evals, "metrics")) metrics.push_back(std::move(series));
  std::string text = line_chart("Loss", "step",
                                {series_of("training", run.steps, "loss"), series_of("validation", run.evals, "loss")});
  text += line_chart("Metrics", "step", metrics);
  text += line_chart("Learning rate", "step", {series_of("learning rate", run.steps, "learning_rate")});
  text += line_chart("Scale of the loss (fp16)", "step", {series_of("scale", run.steps, "loss_scale")});
  text += line_chart("Samples a second, since the start", "step",
                     {series_of("samples/s", run.steps, "samples_per_second")});
  text += line_chart("Waiting for input, seconds of each step", "step",
                     {series_of("rank 0", run.steps, "data_wait_seconds")});
  return text.empty() ? "" : "<h2>Curves</h2>\n<div class=\"charts\">" + text + "</div>\n";
}

/// Columns "..._by_rank" of the end: a row a rank.
std::string rank_table(const EventJson& end) {
  std::string head = "<th>rank</th>";
  std::map<int, std::string> rows;
  for (const auto& [name, values] : end.items()) {
    if (!name.ends_with("_by_rank") || !values.is_object()) continue;
    const std::string title = name.substr(0, name.size() - std::string_view("_by_rank").size());
    head += fmt::format("<th class=\"n\">{}</th>", telemetry::spaced(title));
    for (const auto& [rank, value] : values.items()) {
      const telemetry::Field field(value.is_number() ? value.get<double>() : NAN);
      rows[std::stoi(rank)] += fmt::format("<td class=\"n\">{}</td>", telemetry::to_text(title, field));
    }
  }
  std::string body;
  for (const auto& [rank, cells] : rows) body += fmt::format("<tr><td>{}</td>{}</tr>", rank, cells);
  return body.empty() ? "" : fmt::format("<div class=\"card\"><table><tr>{}</tr>{}</table></div>\n", head, body);
}

/// Each value stands until the next one, and the last until `end`.
std::vector<std::pair<double, double>> stairs(const std::vector<std::pair<double, double>>& points, double end) {
  std::vector<std::pair<double, double>> all;
  for (const auto& [at, value] : points) {
    if (!all.empty()) all.emplace_back(at, all.back().second);
    all.emplace_back(at, value);
  }
  if (!all.empty()) all.emplace_back(std::max(end, all.back().first), all.back().second);
  return all;
}

std::string ranks(const RunEvents& run) {
  std::vector<EventJson> moves;
  for (const EventJson& event : run.others) {
    if (text_of(event, "event") == "balance") moves.push_back(event);
  }
  std::string charts = line_chart("Seconds a shard", "step", map_series("rank ", run.steps, "shard_seconds"));
  std::vector<Series> shares = map_series("rank ", moves, "shares_by_rank");
  for (Series& series : shares) series.points = stairs(series.points, number_of(last_of(run), "step"));
  charts += line_chart("Shards of each rank, since the first move", "step", std::move(shares));
  if (!charts.empty()) charts = "<div class=\"charts\">" + charts + "</div>\n";
  const std::string table = run.end.is_object() ? rank_table(run.end) : "";
  return charts.empty() && table.empty() ? "" : "<h2>Ranks and balance</h2>\n" + charts + "<p></p>" + table;
}

std::string phases(const EventJson& end) {
  if (!end.is_object() || !end.contains("phases")) return "";
  std::vector<std::pair<double, std::string>> sorted;
  double total = 0;
  for (const auto& [name, seconds] : end["phases"].items()) {
    sorted.emplace_back(seconds.get<double>(), name);
    total += sorted.back().first;
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

std::string events(const RunEvents& run) {
  std::string rows;
  const double began = run.others.empty() ? 0 : number_of(run.others.front(), "time");
  for (const EventJson& event : run.others) {
    const auto parsed = telemetry::parse_event(event.dump());
    if (!parsed || parsed->first == "start") continue;
    auto [name, record] = *parsed;
    std::erase_if(record, [](const auto& field) { return field.first == "time"; });
    rows += fmt::format("<tr><td class=\"n\">{}</td><td>{}</td><td><pre>{}</pre></td></tr>",
                        telemetry::clock_time(number_of(event, "time") - began), escaped(name),
                        escaped(telemetry::event_text(name, record, {})));
  }
  if (rows.empty()) return "";
  return "<h2>Events</h2>\n<div class=\"card\"><table><tr><th class=\"n\">after</th><th>event</th><th></th></tr>" +
         rows + "</table></div>\n";
}

/// "12.3 Wh, of the GPUs of ranks 0, 1"
std::string energy(const RunEvents& run) {
  if (run.metered.empty()) return "not measured";
  std::string ranks;
  for (const std::string& rank : run.metered) ranks += (ranks.empty() ? "" : ", ") + rank;
  return fmt::format("{:.3g} Wh, of the GPU{} of rank{} {}", run.joules / kHour, run.metered.size() == 1 ? "" : "s",
                     run.metered.size() == 1 ? "" : "s", ranks);
}

std::string environment(const RunEvents& run) {
  const EventJson& start = run.start;
  std::string rows;
  for (const char* name : {"device", "ranks", "hosts", "threads", "shards", "batch_size", "parameters", "samples",
                           "validation_samples", "exactness", "fingerprint", "version"}) {
    if (!start.contains(name)) continue;
    const std::string value = start[name].is_string() ? start[name].get<std::string>() : start[name].dump();
    rows += fmt::format("<tr><th>{}</th><td>{}</td></tr>", telemetry::spaced(name), escaped(value));
  }
  rows += fmt::format("<tr><th>energy</th><td>{}</td></tr>", energy(run));
  return "<h2>Environment</h2>\n<div class=\"card\"><table>" + rows + "</table></div>\n";
}

/// Of `launch` it is in the run directory; else in the checkpoints, of which the newest is as good as any.
std::optional<std::string> stored_job(const std::string& run_directory) {
  if (auto job = read_whole_file(run_directory + "/job.yaml")) return job;
  std::string ignored;
  for (const auto& checkpoint : checkpoint::list_checkpoints(run_directory + "/checkpoints")) {
    if (const auto job = checkpoint::job_of_manifest(checkpoint + "/manifest.json", ignored)) {
      const auto json = EventJson::parse(*job, nullptr, false);
      return json.is_discarded() ? *job : json.dump(2);
    }
  }
  return std::nullopt;
}

std::string configuration(const std::string& run_directory) {
  const auto job = stored_job(run_directory);
  if (!job) return "";
  return "<h2>Configuration</h2>\n<div class=\"card\"><details><summary>the whole job, with every "
         "default</summary><pre>" +
         escaped(*job) + "</pre></details></div>\n";
}

/// What `lockstep trace merge` said of some steps.
std::string timeline(const std::string& run_directory) {
  const std::string folder = run_directory + "/trace";
  const auto verdict = read_whole_file(telemetry::diagnosis_path(folder));
  if (!verdict) return "";
  return fmt::format(
      "<h2>What the steps waited for</h2>\n<div class=\"card\">{}<p class=\"about\">The timeline is {}/merged.json; "
      "Perfetto opens it.</p></div>\n",
      escaped(*verdict), escaped(folder));
}

}  // namespace

std::string report_page(const std::string& run_directory, const RunEvents& run) {
  const std::string title = text_of(run.start, "job", "a run");
  const std::string outcome =
      run.end.is_object() ? text_of(run.end, "outcome", "done") : std::string("has not ended, or died");
  std::string page = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width\"><title>{0}: lockstep</title><style>{1}</style></head><body>\n<h1>{0}</h1>\n"
      "<p class=\"about\">{2}; {3}</p>\n",
      escaped(title), kReportStyle, escaped(outcome), escaped(run_directory));
  page += tiles(run) + curves(run) + ranks(run) + phases(run.end) + timeline(run_directory) + events(run) +
          environment(run) + configuration(run_directory);
  if (run.end.is_object()) {
    page += fmt::format("<p class=\"about\">parameters sha256: {}</p>\n", text_of(run.end, "parameters_sha256"));
  }
  return page + "</body></html>\n";
}

}  // namespace lockstep::cli
