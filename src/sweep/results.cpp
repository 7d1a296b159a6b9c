#include "sweep/results.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <set>

namespace lockstep::sweep {

namespace {

using Json = nlohmann::ordered_json;

/// A cell of CSV (RFC 4180).
std::string cell(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

/// JSON text as a cell: strings without their quotes.
std::string value_cell(const std::string* value) {
  if (value == nullptr) return "";
  const Json json = Json::parse(*value, nullptr, /*allow_exceptions=*/false);
  return cell(json.is_string() ? json.get<std::string>() : *value);
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
  std::vector<std::string> head = {"trial",          "state",    "value",   "steps",
                                   "device_seconds", "failures", "message", "parameters_sha256"};
  for (const auto& parameter : study.options().parameters) head.push_back(cell(parameter.path));
  for (const auto& name : metrics) head.push_back("validation_" + name);
  std::string text = fmt::format("{}\r\n", fmt::join(head, ","));
  for (const auto& trial : study.trials()) {
    std::vector<std::string> row = {fmt::format("{}", trial.number),
                                    name_of(trial.state),
                                    trial.reports.empty() ? "" : number_cell(trial.reports.back().value),
                                    fmt::format("{}", trial.steps),
                                    fmt::format("{:.3f}", trial.device_seconds),
                                    fmt::format("{}", trial.failures),
                                    cell(trial.message),
                                    trial.parameters_sha256};
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
  }
  const Trial* best = study.best();
  const SweepOptions& options = study.options();
  return Json{{"sweep", options.name},
              {"method", name_of(options.method)},
              {"seed", options.seed},
              {"metric", options.metric},
              {"direction", name_of(options.direction)},
              {"best", best == nullptr ? Json() : Json(best->number)},
              {"trials", list}}
             .dump(2, ' ', false, Json::error_handler_t::replace) +
         "\n";
}

std::string best_yaml(const Study& study, const Trial& best, const std::string& job) {
  return fmt::format("# {} {} of the {} {}: validation {} {} after {} steps.\n# {}\n{}",
                     study.options().ensemble ? "Member" : "Trial", best.number, study.options().whole(),
                     study.options().name, study.options().metric, best.reports.back().value, best.reports.back().steps,
                     text(best.settings), job);
}

std::string trial_directory(const std::string& sweep_directory, int trial) {
  return fmt::format("{}/trials/{:04}", sweep_directory, trial);
}

}  // namespace lockstep::sweep
