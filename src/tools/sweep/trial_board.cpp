#include "tools/sweep/trial_board.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "observe/telemetry/tensorboard.hpp"

namespace lockstep::sweep {

namespace {

using Json = nlohmann::ordered_json;

/// A value of a parameter whose choices may be of several types: then all are texts.
telemetry::HyperParameter parameter_of(const SweepParameter& parameter, const std::string& value) {
  const auto all = [&](bool (Json::*is)() const noexcept) {
    return std::all_of(parameter.choices.begin(), parameter.choices.end(),
                       [&](const std::string& choice) { return (Json::parse(choice).*is)(); });
  };
  const Json json = Json::parse(value);
  if (parameter.distribution != Distribution::choice || all(&Json::is_number)) {
    return {parameter.path, json.get<double>()};
  }
  if (all(&Json::is_boolean)) return {parameter.path, json.get<bool>()};
  return {parameter.path, json.is_string() ? json.get<std::string>() : value};
}

std::string tag(const std::string& metric) {
  return "validation/" + metric;
}

}  // namespace

TrialBoard::TrialBoard(std::string folder, const SweepOptions& options, const std::vector<std::string>& metrics)
    : folder_(std::move(folder)), options_(options) {
  std::filesystem::remove_all(folder_);
  std::vector<telemetry::HyperParameter> parameters;
  for (const auto& parameter : options.parameters)
    parameters.push_back(parameter_of(parameter, value_at(parameter, 0)));
  std::vector<std::string> tags = {tag(options.metric)};
  for (const auto& metric : metrics) {
    if (metric != options.metric) tags.push_back(tag(metric));
  }
  if (options.metric != "loss") tags.push_back(tag("loss"));
  telemetry::TensorBoard(folder_, 0).experiment(parameters, tags);
}

void TrialBoard::show(const Trial& trial) const {
  const std::string folder = fmt::format("{}/{:04}", folder_, trial.number);
  std::filesystem::remove_all(folder);
  telemetry::TensorBoard board(folder, 0);
  std::vector<telemetry::HyperParameter> settings;
  for (const auto& parameter : options_.parameters) {
    const std::string* value = value_of(trial.settings, parameter.path);
    if (value != nullptr) settings.push_back(parameter_of(parameter, *value));
  }
  board.session(settings);
  for (const auto& report : trial.reports) {
    if (report.steps != trial.steps) board.scalars(report.steps, {{tag(options_.metric), report.value}});
  }
  std::vector<std::pair<std::string, double>> last;
  for (const auto& [name, value] : trial.metrics) last.emplace_back(tag(name), value);
  board.scalars(trial.steps, last);
  if (trial.state == TrialState::done || trial.state == TrialState::failed) {
    board.end_session(trial.steps, trial.state == TrialState::done);
  }
}

}  // namespace lockstep::sweep
