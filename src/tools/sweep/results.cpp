#include "tools/sweep/results.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "core/words.hpp"
#include "tools/sweep/folds.hpp"

namespace lockstep::sweep {

namespace {

using Json = nlohmann::ordered_json;

/// JSON text as a cell: strings without their quotes.
std::string value_cell(const std::string* value) {
  if (value == nullptr) return "";
  const Json json = Json::parse(*value, nullptr, /*allow_exceptions=*/false);
  return csv_field(json.is_string() ? json.get<std::string>() : *value);
}

std::set<std::string> metric_names(const Study& study) {
  std::set<std::string> names;
  for (const auto& trial : study.trials()) {
    for (const auto& [name, value] : trial.metrics) names.insert(name);
  }
  return names;
}

std::string number_cell(double value) {
  return fmt::format("{}", value);
}

}  // namespace

std::string trials_csv(const Study& study) {
  const auto metrics = metric_names(study);
  const bool copies = study.options().method == SearchMethod::population;
  std::vector<std::string> head = {"trial",          "state",    "value",   "steps",
                                   "device_seconds", "failures", "message", "parameters_sha256"};
  if (copies) head.insert(head.end(), {"from_trial", "from_step"});
  for (const auto& parameter : study.options().parameters) head.push_back(csv_field(parameter.path));
  for (const auto& name : metrics) head.push_back("validation_" + name);
  std::string text = fmt::format("{}\r\n", fmt::join(head, ","));
  for (const auto& trial : study.trials()) {
    std::vector<std::string> row = {fmt::format("{}", trial.number),
                                    name_of(trial.state),
                                    trial.reports.empty() ? "" : number_cell(trial.reports.back().value),
                                    fmt::format("{}", trial.steps),
                                    fmt::format("{:.3f}", trial.device_seconds),
                                    fmt::format("{}", trial.failures),
                                    csv_field(trial.message),
                                    trial.parameters_sha256};
    if (copies) {
      row.push_back(trial.origin ? fmt::format("{}", trial.origin->trial) : "");
      row.push_back(trial.origin ? fmt::format("{}", trial.origin->steps) : "");
    }
    for (const auto& parameter : study.options().parameters) {
      row.push_back(value_cell(value_of(trial.settings, parameter.path)));
    }
    for (const auto& name : metrics) {
      const auto found = trial.metrics.find(name);
      row.push_back(found == trial.metrics.end() ? "" : number_cell(found->second));
    }
    text += fmt::format("{}\r\n", fmt::join(row, ","));
  }
  return text;
}

std::string trials_json(const Study& study) {
  Json list = Json::array();
  for (const auto& trial : study.trials()) {
    Json settings = Json::object(), reports = Json::array();
    for (const auto& [path, value] : trial.settings) settings[path] = Json::parse(value);
    for (const auto& report : trial.reports) reports.push_back({{"steps", report.steps}, {"value", report.value}});
    list.push_back({{"trial", trial.number},
                    {"state", name_of(trial.state)},
                    {"value", trial.reports.empty() ? Json() : Json(trial.reports.back().value)},
                    {"steps", trial.steps},
                    {"settings", settings},
                    {"metrics", trial.metrics},
                    {"reports", reports},
                    {"outcome", trial.outcome},
                    {"parameters_sha256", trial.parameters_sha256},
                    {"device_seconds", trial.device_seconds},
                    {"failures", trial.failures},
                    {"message", trial.message}});
    if (trial.origin) list.back()["from"] = {{"trial", trial.origin->trial}, {"step", trial.origin->steps}};
  }
  const Trial* best = study.best();
  const SweepOptions& options = study.options();
  Json json = {{"sweep", options.name},
               {"method", name_of(options.method)},
               {"seed", options.seed},
               {"metric", options.metric},
               {"direction", name_of(options.direction)},
               {"best", best == nullptr ? Json() : Json(best->number)},
               {"trials", list}};
  for (const OverFolds& one : over_folds(study)) {
    Json settings = Json::object();
    for (const auto& [path, value] : one.settings) settings[path] = Json::parse(value);
    json["folds"].push_back(
        {{"settings", settings}, {"mean", one.mean()}, {"deviation", one.deviation()}, {"values", one.values}});
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string best_yaml(const Study& study, const Trial& best, const std::string& job) {
  const std::string copied =
      best.origin ? fmt::format("# These settings held from step {} on; lockstep replay trains best-history.json.\n",
                                best.origin->steps)
                  : "";
  return fmt::format("# {} {} of the {} {}: validation {} {} after {} steps.\n# {}\n{}{}",
                     study.options().ensemble ? "Member" : "Trial", best.number, study.options().whole(),
                     study.options().name, study.options().metric, best.reports.back().value, best.reports.back().steps,
                     text(best.settings), copied, job);
}

std::vector<Leg> legs_of(const Study& study, const Trial& trial,
                         const std::function<std::string(const Settings&)>& job_of) {
  std::vector<Leg> legs;
  std::int64_t until = trial.state == TrialState::done ? 0 : trial.reports.back().steps;
  for (const Trial* one : study.ancestry(trial)) {
    legs.push_back({one->number, until, one->settings, job_of(one->settings)});
    until = one->origin ? one->origin->steps : 0;
  }
  std::reverse(legs.begin(), legs.end());
  return legs;
}

std::string history_json(const Study& study, const Trial& trial, const std::vector<Leg>& legs) {
  Json list = Json::array();
  for (const auto& leg : legs) {
    Json settings = Json::object();
    for (const auto& [path, value] : leg.settings) settings[path] = Json::parse(value);
    list.push_back({{"trial", leg.trial}, {"settings", settings}, {"job", Json::parse(leg.job)}});
    if (leg.until > 0) list.back()["until"] = leg.until;
  }
  return Json{{"sweep", study.options().name},
              {"trial", trial.number},
              {"steps", trial.reports.back().steps},
              {"parameters_sha256", trial.parameters_sha256},
              {"legs", list}}
             .dump(2) +
         "\n";
}

std::string trial_directory(const std::string& sweep_directory, int trial) {
  return fmt::format("{}/trials/{:04}", sweep_directory, trial);
}

}  // namespace lockstep::sweep
