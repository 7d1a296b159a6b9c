#include "cli/recorded_sweep.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "core/whole_file.hpp"
#include "lockstep/error.hpp"

namespace lockstep::cli {

using Json = nlohmann::ordered_json;

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

}  // namespace lockstep::cli
