#include "cli/runs_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/event_series.hpp"
#include "cli/report_page.hpp"
#include "cli/svg_chart.hpp"
#include "core/files.hpp"
#include "graph/model_graph.hpp"
#include "lockstep/trainer.hpp"
#include "observe/telemetry/text.hpp"
#include "run/checkpoint/checkpoint.hpp"

namespace lockstep::cli {

namespace {

using Json = nlohmann::ordered_json;

struct NamedRun {
  std::string name;  ///< the directory's last component, or the whole path where two have the same
  std::string directory;
  RunEvents events;
};

std::vector<NamedRun> read_runs(const std::vector<std::string>& directories) {
  std::vector<NamedRun> runs;
  std::map<std::string, int> uses;
  for (const std::string& directory : directories) {
    std::string name = std::filesystem::path(directory).lexically_normal().filename().string();
    if (name.empty() || name == ".") name = directory;
    ++uses[name];
    runs.push_back({std::move(name), directory, read_run_events(directory)});
  }
  for (NamedRun& run : runs) {
    if (uses[run.name] > 1) run.name = run.directory;
  }
  return runs;
}

/// "loss", and the metrics that any run was evaluated by.
std::vector<std::string> evaluation_metrics(const std::vector<NamedRun>& runs) {
  std::vector<std::string> names{"loss"};
  std::set<std::string> known;
  for (const NamedRun& run : runs) {
    for (const events::Evaluation& eval : run.events.evals) {
      for (const auto& [name, value] : eval.metrics) known.insert(name);
    }
  }
  names.insert(names.end(), known.begin(), known.end());
  return names;
}

/// A row of a table, with the best of its numbers marked.
struct ComparedRow {
  std::string name;
  std::vector<std::string> cells;  ///< by run; empty: not known
  std::optional<std::size_t> best = {};
};

std::string comparison_table(const std::vector<NamedRun>& runs, const std::vector<ComparedRow>& rows) {
  std::string text = "<div class=\"card\"><table><tr><th></th>";
  for (const NamedRun& run : runs) text += fmt::format("<th class=\"n\">{}</th>", escaped(run.name));
  for (const ComparedRow& row : rows) {
    text += fmt::format("</tr><tr><th>{}</th>", escaped(row.name));
    for (std::size_t i = 0; i < row.cells.size(); ++i) {
      text += fmt::format("<td class=\"n{}\">{}</td>", row.best == i ? " best" : "", escaped(row.cells[i]));
    }
  }
  return text + "</tr></table></div>\n";
}

ComparedRow row_of_best(const std::vector<NamedRun>& runs, const std::string& metric) {
  ComparedRow row{"best validation " + telemetry::spaced(metric), {}};
  std::optional<double> best;
  const bool higher = higher_is_better(runs.front().events.start, metric);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const auto found = best_evaluation(runs[i].events, metric);
    row.cells.push_back(
        found ? fmt::format("{} (step {})", telemetry::fixed_number(found->value), telemetry::grouped(found->step))
              : "");
    if (!found || (best && (higher ? found->value <= *best : found->value >= *best))) continue;
    best = found->value;
    row.best = i;
  }
  return row;
}

template <class Text>
ComparedRow compared_row(const std::vector<NamedRun>& runs, const std::string& name, Text text) {
  ComparedRow row{name, {}};
  for (const NamedRun& run : runs) row.cells.push_back(text(run.events));
  return row;
}

/// Every value of a job by its path, as in "model.resnet.depth".
std::map<std::string, std::string> settings_of(const std::string& directory) {
  std::map<std::string, std::string> settings;
  const Json json = Json::parse(stored_job(directory).value_or(""), nullptr, false);
  if (json.is_discarded() || !json.contains("job")) return settings;
  const Json flat = json["job"].flatten();
  for (const auto& [pointer, value] : flat.items()) {
    std::string path = pointer.substr(1);
    std::replace(path.begin(), path.end(), '/', '.');
    settings[path] = value.is_string() ? value.get<std::string>() : value.is_null() ? "{}" : value.dump();
  }
  settings.erase("name");
  settings.erase("run_directory");
  return settings;
}

/// Two runs whose jobs read the same sources, which had other contents: "a and b"; empty: there are none.
std::string runs_of_changed_data(const std::vector<NamedRun>& runs) {
  std::vector<std::map<std::string, std::string>> sources;
  for (const NamedRun& run : runs) {
    sources.push_back(settings_of(run.directory));
    std::erase_if(sources.back(), [](const auto& setting) {
      return !setting.first.starts_with("data.train.") && !setting.first.starts_with("data.validation.");
    });
  }
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (std::size_t j = i + 1; j < runs.size(); ++j) {
      const auto &one = runs[i].events.start.data_sha256, &other = runs[j].events.start.data_sha256;
      if (!one || !other || *one == *other || sources[i] != sources[j]) continue;
      return fmt::format("{} and {}", runs[i].name, runs[j].name);
    }
  }
  return "";
}

std::string results_of_runs(const std::vector<NamedRun>& runs) {
  const std::string changed = runs_of_changed_data(runs);
  std::vector<ComparedRow> rows;
  rows.push_back(compared_row(runs, "outcome", [](const RunEvents& run) {
    return run.end ? run.end->outcome : std::string("still running, or died");
  }));
  rows.push_back(compared_row(runs, "steps", [](const RunEvents& run) {
    return run.steps.empty() ? std::string() : telemetry::grouped(run.steps.back().step);
  }));
  rows.push_back(compared_row(runs, "loss of the last step", [](const RunEvents& run) {
    return run.steps.empty() ? std::string() : telemetry::fixed_number(run.steps.back().loss);
  }));
  for (const std::string& metric : evaluation_metrics(runs)) {
    ComparedRow row = row_of_best(runs, metric);
    if (!row.best) continue;
    if (!changed.empty()) row.best.reset();
    rows.push_back(std::move(row));
  }
  rows.push_back(compared_row(runs, "samples/s", [](const RunEvents& run) {
    return run.steps.empty() ? std::string() : telemetry::short_number(run.steps.back().samples_per_second);
  }));
  rows.push_back(compared_row(runs, "ranks", [](const RunEvents& run) { return telemetry::grouped(run.start.ranks); }));
  rows.push_back(compared_row(runs, "device-hours",
                              [](const RunEvents& run) { return fmt::format("{:.3g}", run.rank_seconds / 3600); }));
  rows.push_back(
      compared_row(runs, "parameters", [](const RunEvents& run) { return telemetry::grouped(run.start.parameters); }));
  rows.push_back(compared_row(runs, "parameters sha256", [](const RunEvents& run) {
    constexpr std::size_t kShown = 16;
    return run.end ? run.end->parameters_sha256.substr(0, kShown) : std::string();
  }));
  const std::string table = comparison_table(runs, rows);
  return changed.empty() ? table
                         : table + fmt::format(
                                       "<p class=\"about\">The data have changed between {}: their losses and "
                                       "metrics are of different samples, and none is the best.</p>\n",
                                       escaped(changed));
}

std::string job_differences(const std::vector<NamedRun>& runs) {
  constexpr std::size_t kMost = 60;
  std::vector<std::map<std::string, std::string>> settings;
  std::set<std::string> paths;
  for (const NamedRun& run : runs) {
    settings.push_back(settings_of(run.directory));
    for (const auto& [path, value] : settings.back()) paths.insert(path);
  }
  std::vector<ComparedRow> rows;
  for (const std::string& path : paths) {
    ComparedRow row{path, {}};
    for (const auto& of_run : settings) row.cells.push_back(of_run.contains(path) ? of_run.at(path) : "");
    const bool same = std::all_of(row.cells.begin(), row.cells.end(),
                                  [&](const std::string& cell) { return cell == row.cells.front(); });
    if (!same) rows.push_back(std::move(row));
  }
  const bool known = std::none_of(settings.begin(), settings.end(), [](const auto& of_run) { return of_run.empty(); });
  std::string text = "<h2>What their jobs say differently</h2>\n";
  if (!known) return text + "<p class=\"about\">A run without a checkpoint has not kept its job.</p>\n";
  if (rows.empty()) return text + "<p class=\"about\">Nothing but names.</p>\n";
  const std::size_t more = rows.size() > kMost ? rows.size() - kMost : 0;
  rows.resize(rows.size() - more);
  text += comparison_table(runs, rows);
  return more == 0 ? text : text + fmt::format("<p class=\"about\">{} more settings differ.</p>\n", more);
}

std::string curves_of_runs(const std::vector<NamedRun>& runs) {
  const auto of_steps = [&](const std::string& title, auto value, bool smoothed) {
    std::vector<Series> all;
    for (const NamedRun& run : runs)
      all.emplace_back(event_series(run.name, run.events.steps, value)).smoothed = smoothed;
    return line_chart(title, "step", std::move(all));
  };
  std::string text = of_steps(
      "Loss in training", [](const events::Step& step) { return std::optional(step.loss); }, true);
  for (const std::string& metric : evaluation_metrics(runs)) {
    std::vector<Series> all;
    for (const NamedRun& run : runs) {
      all.push_back(event_series(run.name, run.events.evals,
                                 [&](const events::Evaluation& eval) { return value_of_evaluation(eval, metric); }));
    }
    text += line_chart("Validation " + telemetry::spaced(metric), "step", std::move(all));
  }
  text += of_steps(
      "Learning rate", [](const events::Step& step) { return std::optional(step.learning_rate); }, false);
  text += of_steps(
      "Samples per second, since the start",
      [](const events::Step& step) { return std::optional(step.samples_per_second); }, false);
  return text.empty() ? "" : "<h2>Curves</h2>\n<div class=\"charts\">" + text + "</div>\n";
}

}  // namespace

std::optional<std::string> stored_job(const std::string& run_directory) {
  std::string ignored;
  for (const auto& checkpoint : checkpoint::list_checkpoints(run_directory + "/checkpoints")) {
    if (const auto job = checkpoint::job_of_manifest(checkpoint + "/manifest.json", ignored)) {
      const Json json = Json::parse(*job, nullptr, false);
      return json.is_discarded() ? *job : json.dump(2);
    }
  }
  return read_whole_file(run_directory + "/job.yaml");
}

bool higher_is_better(const events::Start& start, const std::string& metric) {
  if (start.higher_is_better) {
    if (fmt::format(" {} ", *start.higher_is_better).find(fmt::format(" {} ", metric)) != std::string::npos)
      return true;
    if (metric.find('/') == std::string::npos) return false;
  }
  // A class's, as disc/iou, or one of a run of an earlier version: the start event does not say it.
  static const Registries registries = Registries::built_in();
  return lockstep::higher_is_better(registries.ops, metric);
}

std::optional<BestEvaluation> best_evaluation(const RunEvents& run, const std::string& metric) {
  std::optional<BestEvaluation> best;
  const bool higher = higher_is_better(run.start, metric);
  for (const events::Evaluation& eval : run.evals) {
    const auto value = value_of_evaluation(eval, metric);
    if (!value || !std::isfinite(*value)) continue;
    if (!best || (higher ? *value > best->value : *value < best->value)) best = {*value, eval.step};
  }
  return best;
}

std::string runs_report_page(const std::vector<std::string>& directories) {
  const std::vector<NamedRun> runs = read_runs(directories);
  std::string names;
  for (const NamedRun& run : runs) names += (names.empty() ? "" : ", ") + run.directory;
  return page_of(fmt::format("{} runs", runs.size()), names,
                 results_of_runs(runs) + job_differences(runs) + curves_of_runs(runs));
}

}  // namespace lockstep::cli
