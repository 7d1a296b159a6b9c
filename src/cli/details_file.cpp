// The file of an evaluation's details: JSON, in the run directory.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "cli/evaluation_details.hpp"
#include "core/files.hpp"
#include "lockstep/error.hpp"

namespace lockstep::cli {

namespace {

using ensemble::Meaning;
using Json = nlohmann::ordered_json;

constexpr std::array<const char*, 3> kPredicts{"classes", "labels", "values"};  // in the order of Meaning

std::string path_of(const std::string& run_directory, const std::string& set) {
  return fmt::format("{}/evaluations/{}.json", run_directory, set);
}

Json json_of(const EvaluationDetails& details) {
  Json json = {{"set", details.set},
               {"checkpoint", details.checkpoint},
               {"step", details.step},
               {"samples", details.samples},
               {"predicts", kPredicts.at(static_cast<std::size_t>(details.meaning))}};
  const bool values = details.meaning == Meaning::values;
  for (const DetailsRow& row : details.rows) {
    Json one = {{"name", row.name}, {"samples", row.samples}};
    one[values ? "absolute_error" : "precision"] = values ? row.absolute_error : row.precision;
    one[values ? "root_squared_error" : "recall"] = values ? row.root_squared_error : row.recall;
    if (row.auc) one["auc"] = *row.auc;
    json["rows"].push_back(std::move(one));
  }
  for (const Confusion& pair : details.confusions) {
    json["confusions"].push_back({pair.actual, pair.predicted, pair.samples});
  }
  for (const WorstSample& sample : details.worst) {
    json["worst"].push_back({{"id", sample.id},
                             {"name", sample.name},
                             {"loss", sample.loss},
                             {"actual", sample.actual},
                             {"predicted", sample.predicted},
                             {"png", sample.png}});
  }
  return json;
}

/// Throws nlohmann's exceptions where something is missing.
EvaluationDetails details_from(const Json& json) {
  EvaluationDetails details{.set = json.at("set"),
                            .checkpoint = json.at("checkpoint"),
                            .step = json.at("step"),
                            .samples = json.at("samples")};
  const auto* const kind = std::find(kPredicts.begin(), kPredicts.end(), json.at("predicts").get<std::string>());
  if (kind == kPredicts.end()) throw Error(ExitCode::data, "\"predicts\" is none of classes, labels, values");
  details.meaning = static_cast<Meaning>(kind - kPredicts.begin());
  for (const Json& row : json.value("rows", Json::array())) {
    details.rows.push_back({.name = row.at("name"),
                            .samples = row.at("samples"),
                            .precision = row.value("precision", 0.0),
                            .recall = row.value("recall", 0.0),
                            .absolute_error = row.value("absolute_error", 0.0),
                            .root_squared_error = row.value("root_squared_error", 0.0),
                            .auc = row.contains("auc") ? std::optional<double>(row.at("auc")) : std::nullopt});
  }
  const auto classes = std::ssize(details.rows);
  for (const Json& pair : json.value("confusions", Json::array())) {
    details.confusions.push_back({pair.at(0), pair.at(1), pair.at(2)});
    const Confusion& read = details.confusions.back();
    if (std::min(read.actual, read.predicted) < 0 || std::max(read.actual, read.predicted) >= classes) {
      throw Error(ExitCode::data, "a class that there is not");
    }
  }
  for (const Json& sample : json.value("worst", Json::array())) {
    details.worst.push_back({.id = sample.at("id"),
                             .loss = sample.at("loss"),
                             .name = sample.at("name"),
                             .actual = sample.at("actual"),
                             .predicted = sample.at("predicted"),
                             .png = sample.at("png")});
  }
  return details;
}

}  // namespace

std::string write_details(const std::string& run_directory, const EvaluationDetails& details) {
  auto path = path_of(run_directory, details.set);
  write_whole_file(path, json_of(details).dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
  return path;
}

std::optional<EvaluationDetails> read_details(const std::string& run_directory, const std::string& set) {
  const std::string path = path_of(run_directory, set);
  const auto text = read_whole_file(path);
  if (!text) return std::nullopt;
  try {
    return details_from(Json::parse(*text));
  } catch (const std::exception& error) {
    throw Error(ExitCode::data, fmt::format("{}: damaged ({}); write it again with lockstep eval {} --set {} --details",
                                            path, error.what(), run_directory, set));
  }
}

}  // namespace lockstep::cli
