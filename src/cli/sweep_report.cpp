#include "cli/sweep_report.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cli/event_series.hpp"
#include "cli/lineage_chart.hpp"
#include "cli/report_page.hpp"
#include "cli/run_events.hpp"
#include "cli/svg_chart.hpp"
#include "core/files.hpp"
#include "lockstep/error.hpp"
#include "observe/telemetry/text.hpp"
#include "tools/sweep/importance.hpp"
#include "tools/sweep/results.hpp"

namespace lockstep::cli {

namespace {

// A sweep as its trials.json has it, for the report.

struct RecordedTrial {
  std::int64_t number = 0, steps = 0;
  std::string state, message;
  std::optional<double> value;
  std::map<std::string, std::string> settings;                ///< as JSON
  std::optional<std::pair<std::int64_t, std::int64_t>> from;  ///< trial, step
  std::vector<std::pair<std::int64_t, double>> reports;       ///< steps, value
};

struct RecordedSweep {
  std::string name, method, metric, directory;
  bool maximize = false;
  std::optional<std::int64_t> best;
  std::vector<RecordedTrial> trials;
  std::vector<std::string> parameters;  ///< in the order in which trials have them
  double device_seconds = 0;

  bool has_copies() const {
    return std::any_of(trials.begin(), trials.end(), [](const RecordedTrial& trial) { return trial.from.has_value(); });
  }
  /// A trial and those that it comes from, itself first.
  std::vector<const RecordedTrial*> ancestry(const RecordedTrial& trial) const;
};

using Json = nlohmann::ordered_json;

/// Reads trials.json. Throws Error(data) if it is unreadable.
RecordedSweep read_sweep(const std::string& directory) {
  const std::string path = directory + "/trials.json";
  const auto text = read_whole_file(path);
  const Json json = Json::parse(text.value_or(""), nullptr, false);
  if (json.is_discarded() || !json.contains("trials")) {
    throw Error(ExitCode::data, fmt::format("{}: expected the trials of a sweep, found {}", path,
                                            text ? "something else" : "no such file"));
  }
  RecordedSweep sweep{json.value("sweep", ""), json.value("method", ""), json.value("metric", ""), directory,
                      json.value("direction", "") == "maximize"};
  if (json["best"].is_number_integer()) sweep.best = json["best"].get<std::int64_t>();
  std::set<std::string> known;
  for (const Json& row : json["trials"]) {
    RecordedTrial trial{row.value("trial", std::int64_t{0}), row.value("steps", std::int64_t{0}),
                        row.value("state", ""), row.value("message", "")};
    if (row["value"].is_number()) trial.value = row["value"].get<double>();
    for (const auto& [path_of, value] : row["settings"].items()) {
      trial.settings[path_of] = value.dump();
      if (known.insert(path_of).second) sweep.parameters.push_back(path_of);
    }
    if (row.contains("from")) trial.from = {row["from"].at("trial"), row["from"].at("step")};
    for (const Json& report : row.value("reports", Json::array())) {
      if (report["value"].is_number()) trial.reports.emplace_back(report["steps"], report["value"]);
    }
    sweep.device_seconds += row.value("device_seconds", 0.0);
    sweep.trials.push_back(std::move(trial));
  }
  return sweep;
}

std::vector<const RecordedTrial*> RecordedSweep::ancestry(const RecordedTrial& trial) const {
  std::vector<const RecordedTrial*> line = {&trial};
  while (line.back()->from && line.back()->from->first < line.back()->number) {
    line.push_back(&trials.at(line.back()->from->first));
  }
  return line;
}

using Json = nlohmann::ordered_json;

constexpr std::size_t kCurves = 8, kRows = 200;
constexpr double kPictureWidth = 1120, kPictureHeight = 300, kAbove = 34, kBelow = 22, kBeside = 84;

std::string text_of(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

/// Those with a value, the best first.
std::vector<const RecordedTrial*> by_value(const RecordedSweep& sweep) {
  std::vector<const RecordedTrial*> trials;
  for (const RecordedTrial& trial : sweep.trials) {
    if (trial.value) trials.push_back(&trial);
  }
  std::stable_sort(trials.begin(), trials.end(), [&](const RecordedTrial* a, const RecordedTrial* b) {
    return sweep.maximize ? *a->value > *b->value : *a->value < *b->value;
  });
  return trials;
}

/// An axis of the picture: a parameter, or the objective.
class Axis {
 public:
  Axis(std::string name, const std::vector<Json>& values) : name_(std::move(name)) {
    numbers_ = std::all_of(values.begin(), values.end(), [](const Json& value) { return value.is_number(); });
    if (numbers_) {
      low_ = high_ = values.empty() ? 0 : values.front().get<double>();
      for (const Json& value : values) {
        low_ = std::min(low_, value.get<double>());
        high_ = std::max(high_, value.get<double>());
      }
      logarithmic_ = low_ > 0 && high_ / low_ > kManyTimes;
      return;
    }
    for (const Json& value : values) {
      const std::string text = text_of(value);
      if (std::find(words_.begin(), words_.end(), text) == words_.end()) words_.push_back(text);
    }
    std::sort(words_.begin(), words_.end());
  }

  const std::string& name() const { return name_; }
  /// 0 at the bottom, 1 at the top.
  double place(const Json& value) const {
    if (!numbers_) {
      const auto at = std::find(words_.begin(), words_.end(), text_of(value)) - words_.begin();
      return (at + 0.5) / words_.size();
    }
    if (high_ == low_) return 0.5;
    const double number = value.get<double>();
    return logarithmic_ ? std::log(number / low_) / std::log(high_ / low_) : (number - low_) / (high_ - low_);
  }
  /// Places and their labels.
  std::vector<std::pair<double, std::string>> ticks() const {
    std::vector<std::pair<double, std::string>> ticks;
    for (const std::string& word : words_) ticks.emplace_back(place(word), word);
    if (!numbers_) return ticks;
    if (high_ == low_) return {{0.5, telemetry::short_number(low_)}};
    constexpr int kSteps = 4;
    for (int i = 0; i <= kSteps; ++i) {
      const double at = static_cast<double>(i) / kSteps;
      ticks.emplace_back(
          at, telemetry::short_number(logarithmic_ ? low_ * std::pow(high_ / low_, at) : low_ + (high_ - low_) * at));
    }
    return ticks;
  }

 private:
  static constexpr double kManyTimes = 20;
  std::string name_;
  bool numbers_ = false, logarithmic_ = false;
  double low_ = 0, high_ = 0;
  std::vector<std::string> words_;
};

double y_at(double place) {
  return kPictureHeight - kBelow - place * (kPictureHeight - kAbove - kBelow);
}

/// A line for each trial across an axis for each parameter and one for the objective. The best quarter is in colour,
/// and the best trial thick.
std::string parallel_coordinates(const RecordedSweep& sweep, const std::vector<const RecordedTrial*>& trials) {
  std::vector<Axis> axes;
  for (const std::string& parameter : sweep.parameters) {
    std::vector<Json> values;
    for (const RecordedTrial* trial : trials) {
      if (const auto found = trial->settings.find(parameter); found != trial->settings.end()) {
        values.push_back(Json::parse(found->second));
      }
    }
    axes.emplace_back(parameter, values);
  }
  std::vector<Json> values;
  for (const RecordedTrial* trial : trials) values.emplace_back(*trial->value);
  axes.emplace_back(sweep.metric, values);
  const double gap = (kPictureWidth - 2 * kBeside) / (std::max<std::size_t>(1, axes.size() - 1));
  const auto x_of = [&](std::size_t i) { return kBeside + gap * i; };
  std::string lines;
  for (std::size_t rank = trials.size(); rank-- > 0;) {  // the best on top
    const RecordedTrial& trial = *trials[rank];
    std::string path;
    bool pen = false;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const auto found = trial.settings.find(axes[i].name());
      const bool objective = i + 1 == axes.size();
      if (!objective && found == trial.settings.end()) continue;  // the line goes past it
      const double place = axes[i].place(objective ? Json(*trial.value) : Json::parse(found->second));
      path += fmt::format("{}{:.1f},{:.1f}", pen ? "L" : "M", x_of(i), y_at(place));
      pen = true;
    }
    const bool good = rank < (trials.size() + 3) / 4;
    lines += fmt::format(
        R"(<g><title>trial {}: {} {}</title><path class="line {}" d="{}" style="stroke-width:{}"/></g>)", trial.number,
        escaped(sweep.metric), telemetry::short_number(*trial.value), good ? "s0" : "s7", path,
        rank == 0 ? 3.2
        : good    ? 1.6
                  : 0.7);
  }
  std::string frame;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    frame += fmt::format(R"(<line class="grid" x1="{0:.1f}" x2="{0:.1f}" y1="{1}" y2="{2}"/>)", x_of(i), kAbove,
                         kPictureHeight - kBelow);
    frame += fmt::format(R"(<text class="tick middle" x="{:.1f}" y="{}">{}</text>)", x_of(i), kAbove - 16,
                         escaped(axes[i].name()));
    for (const auto& [place, label] : axes[i].ticks()) {
      frame += fmt::format(R"(<text class="tick end" x="{:.1f}" y="{:.1f}">{}</text>)", x_of(i) - 5, y_at(place) + 4,
                           escaped(label));
    }
  }
  return fmt::format(
      "<h2>Trials</h2>\n<figure><figcaption>Settings and what they came to: the best quarter in colour, the best trial "
      "thick</figcaption><svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"Parallel coordinates\">{}{}</svg>"
      "</figure>\n",
      kPictureWidth, kPictureHeight, lines, frame);
}

/// The groups of equal settings of a parameter, by trial; -1: the trial does not have it.
std::vector<int> groups_of(const std::string& parameter, const std::vector<const RecordedTrial*>& trials) {
  std::vector<int> groups(trials.size(), -1);
  std::vector<double> numbers;
  std::vector<std::size_t> having;
  std::map<std::string, int> words;
  bool all_numbers = true;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    const auto found = trials[i]->settings.find(parameter);
    if (found == trials[i]->settings.end()) continue;
    having.push_back(i);
    groups[i] = words.try_emplace(text_of(Json::parse(found->second)), static_cast<int>(words.size())).first->second;
    all_numbers = all_numbers && Json::parse(found->second).is_number();
    if (all_numbers) numbers.push_back(Json::parse(found->second).get<double>());
  }
  if (!all_numbers) return groups;
  const std::vector<int> of_numbers = sweep::groups_of_numbers(numbers);
  for (std::size_t i = 0; i < having.size(); ++i) groups[having[i]] = of_numbers[i];
  return groups;
}

std::string importance(const RecordedSweep& sweep, const std::vector<const RecordedTrial*>& trials) {
  std::vector<double> values;
  for (const RecordedTrial* trial : trials) values.push_back(*trial->value);
  std::vector<std::pair<double, std::string>> found;
  for (const std::string& parameter : sweep.parameters) {
    if (const auto share = sweep::explained_variance(groups_of(parameter, trials), values)) {
      found.emplace_back(*share, parameter);
    }
  }
  if (found.empty()) return "";
  std::sort(found.rbegin(), found.rend());
  std::string rows;
  for (const auto& [share, parameter] : found) {
    rows += fmt::format(
        "<tr><td>{}</td><td class=\"n\">{:.0f} %</td><td style=\"width:60%\"><div class=\"bar\"><i class=\"s0\" "
        "style=\"width:{:.1f}%\"></i></div></td></tr>",
        escaped(parameter), 100 * share, 100 * share);
  }
  return fmt::format(
      "<h2>What mattered</h2>\n<div class=\"card\"><table>{}</table><p class=\"about\">Of the variance of the trials' "
      "ranks, what lies between groups of equal settings of one parameter, beyond what chance would put there. What "
      "parameters do together is not in it.</p></div>\n",
      rows);
}

/// The curve of a trial from step 0 on: until a trial goes on from another one, it is that one's.
template <class Series_of>
Series curve_of(const RecordedSweep& sweep, const RecordedTrial& trial, Series_of series_of) {
  Series curve{fmt::format("trial {}", trial.number), {}};
  const auto line = sweep.ancestry(trial);
  double end = std::numeric_limits<double>::infinity();
  for (const RecordedTrial* one : line) {
    const auto points = series_of(read_run_events(sweep::trial_directory(sweep.directory, one->number)));
    const auto after = std::find_if(points.begin(), points.end(), [&](const auto& point) { return point.first > end; });
    curve.points.insert(curve.points.begin(), points.begin(), after);
    if (one->from) end = one->from->second;
  }
  return curve;
}

std::string curves(const RecordedSweep& sweep, const std::vector<const RecordedTrial*>& trials) {
  std::vector<Series> values, rates;
  for (std::size_t i = 0; i < std::min(kCurves, trials.size()); ++i) {
    try {
      values.push_back(curve_of(sweep, *trials[i], [&](const RunEvents& run) {
        return event_series("", run.evals, [&](const auto& eval) { return value_of_evaluation(eval, sweep.metric); })
            .points;
      }));
      if (!sweep.has_copies()) continue;
      rates.push_back(curve_of(sweep, *trials[i], [](const RunEvents& run) {
        return event_series("", run.steps, [](const events::Step& step) { return std::optional(step.learning_rate); })
            .points;
      }));
    } catch (const Error&) {  // its run directory has been removed
    }
  }
  const std::string charts =
      line_chart(fmt::format("Validation {} of the best trials", sweep.metric), "step", std::move(values)) +
      line_chart("Learning rate of the best trials", "step", std::move(rates));
  if (charts.empty()) return "";
  const char* width = sweep.has_copies() ? "1280" : "640";
  return fmt::format("<h2>Curves</h2>\n<div class=\"charts\" style=\"max-width:{}px\">{}</div>\n", width, charts);
}

std::string lineage(const RecordedSweep& sweep) {
  if (!sweep.has_copies()) return "";
  std::vector<LineageTrial> trials;
  for (const RecordedTrial& trial : sweep.trials) trials.push_back({trial.number, trial.from, trial.reports});
  if (sweep.best) {
    for (const RecordedTrial* one : sweep.ancestry(sweep.trials.at(*sweep.best))) {
      trials.at(one->number).of_best = true;
    }
  }
  return lineage_chart(sweep.metric, trials);
}

std::string state_of(const RecordedTrial& trial) {
  std::string text = trial.message.empty() ? trial.state : trial.state + ": " + trial.message;
  if (trial.from) text += fmt::format(", from trial {} at step {}", trial.from->first, trial.from->second);
  return text;
}

std::string table(const RecordedSweep& sweep, const std::vector<const RecordedTrial*>& ranked) {
  std::string head =
      fmt::format("<th class=\"n\">trial</th><th>state</th><th class=\"n\">steps</th><th class=\"n\">{}</th>",
                  escaped(sweep.metric));
  for (const std::string& parameter : sweep.parameters) head += fmt::format("<th>{}</th>", escaped(parameter));
  std::vector<const RecordedTrial*> order = ranked;
  for (const RecordedTrial& trial : sweep.trials) {
    if (!trial.value) order.push_back(&trial);
  }
  std::string rows;
  for (std::size_t i = 0; i < std::min(kRows, order.size()); ++i) {
    const RecordedTrial& trial = *order[i];
    rows += fmt::format("<tr><td class=\"n\">{}</td><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>",
                        trial.number, escaped(state_of(trial)), telemetry::grouped(trial.steps),
                        trial.value ? telemetry::short_number(*trial.value) : "");
    for (const std::string& parameter : sweep.parameters) {
      const auto found = trial.settings.find(parameter);
      rows +=
          fmt::format("<td>{}</td>", found == trial.settings.end() ? "" : escaped(text_of(Json::parse(found->second))));
    }
    rows += "</tr>";
  }
  const std::string more = order.size() > kRows
                               ? fmt::format("<p class=\"about\">The first {} of {}; all are in trials.csv.</p>", kRows,
                                             telemetry::grouped(order.size()))
                               : "";
  return fmt::format("<h2>All trials</h2>\n<div class=\"card\"><table><tr>{}</tr>{}</table>{}</div>\n", head, rows,
                     more);
}

std::string tiles(const RecordedSweep& sweep, const std::vector<const RecordedTrial*>& ranked) {
  const auto count = [&](const std::string& state) {
    return std::count_if(sweep.trials.begin(), sweep.trials.end(),
                         [&](const RecordedTrial& trial) { return trial.state == state; });
  };
  std::string text = tile(telemetry::grouped(std::ssize(sweep.trials)), "trials");
  text += tile(telemetry::grouped(count("done")), "done");
  if (const auto failed = count("failed"); failed > 0) text += tile(telemetry::grouped(failed), "failed");
  const auto best = std::find_if(ranked.begin(), ranked.end(), [&](const RecordedTrial* trial) {
    return sweep.best && trial->number == *sweep.best;
  });
  if (best != ranked.end()) {
    text += tile(telemetry::fixed_number(*(*best)->value),
                 fmt::format("best {}, of trial {}", sweep.metric, (*best)->number));
  }
  text += tile(telemetry::duration(sweep.device_seconds), "of devices");
  return "<div class=\"tiles\">" + text + "</div>\n";
}

std::string best_job(const std::string& directory) {
  const auto job = read_whole_file(directory + "/best.yaml");
  if (!job) return "";
  return fmt::format(
      "<h2>The best job</h2>\n<div class=\"card\"><details><summary>{}/best.yaml, ready to train</summary><pre>{}</pre>"
      "</details></div>\n",
      escaped(directory), escaped(*job));
}

}  // namespace

bool is_sweep(const std::string& directory) {
  std::error_code error;
  return std::filesystem::exists(directory + "/journal.jsonl", error);
}

std::string sweep_report_page(const std::string& directory) {
  const RecordedSweep sweep = read_sweep(directory);
  const auto ranked = by_value(sweep);
  std::string body = tiles(sweep, ranked);
  if (!ranked.empty()) {
    body += parallel_coordinates(sweep, ranked) + importance(sweep, ranked) + lineage(sweep) + curves(sweep, ranked);
  }
  body += table(sweep, ranked) + best_job(directory);
  return page_of(sweep.name,
                 fmt::format("{} search, {} {}; {}", sweep.method, sweep.maximize ? "maximising" : "minimising",
                             sweep.metric, directory),
                 body);
}

}  // namespace lockstep::cli
