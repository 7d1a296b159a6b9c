#include "run/checkpoint/manifest.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/digest.hpp"
#include "core/untrusted.hpp"
#include "lockstep/error.hpp"

namespace lockstep::checkpoint {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kSealKey = "\"manifest_sha256\"";

// JSON cannot represent NaN and infinities, but a loss can have them.
Json write_double(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

double read_double(const Json& json) {
  if (json.is_null()) return std::numeric_limits<double>::quiet_NaN();  // format 1 did not distinguish them
  if (!json.is_string()) return json.get<double>();
  const auto text = json.get<std::string>();
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  return text == "-inf" ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
}

Json to_json(const BestValue& best) {
  return {{"metric", best.metric}, {"value", write_double(best.value)}};
}

// The first manifests of format 1 had none.
BestValue read_best(const Json& json, const char* key) {
  if (!json.contains(key)) return {};
  return {json.at(key).at("metric").get<std::string>(), read_double(json.at(key).at("value"))};
}

Json schedule_json(const Progress& p) {
  const ScheduleMemory& memory = p.schedule_memory;
  return {{"best", to_json(p.schedule_best)},
          {"without_improvement", memory.without_improvement},
          {"cooldown", memory.cooldown},
          {"falls", memory.falls}};
}

// Only jobs whose schedule follows evaluations have one.
void read_schedule(const Json& json, Progress& p) {
  if (!json.contains("schedule")) return;
  const Json& schedule = json.at("schedule");
  p.schedule_best = read_best(schedule, "best");
  p.schedule_memory = {integer_of<std::int64_t>(schedule.at("without_improvement")),
                       integer_of<std::int64_t>(schedule.at("cooldown")),
                       integer_of<std::int64_t>(schedule.at("falls"))};
}

Json to_json(const optim::LossScale& scale) {
  return {{"scale", scale.scale}, {"good_updates", scale.good_updates}, {"skipped", scale.skipped}};
}

// Only jobs with precision: fp16 have one.
optim::LossScale read_loss_scale(const Json& json) {
  if (!json.contains("loss_scale")) return {};
  const Json& scale = json.at("loss_scale");
  return {scale.at("scale").get<double>(), integer_of<std::int64_t>(scale.at("good_updates")),
          integer_of<std::int64_t>(scale.at("skipped"))};
}

void write_progress(const Progress& p, Json& json) {
  json["step"] = p.step;
  json["samples"] = p.samples;
  json["seed"] = p.seed;
  json["micro_batches"] = p.micro_batches;
  json["job_digest"] = p.job_digest;
  json["job"] = p.job;
  for (const auto& earlier : p.earlier_settings) {
    json["earlier_settings"].push_back({{"until", earlier.until}, {"job", earlier.job}});
  }
  json["data_digest"] = p.data_digest;
  if (!p.schema.empty()) json["data"] = Json::parse(p.schema, nullptr, false);
  if (json["data"].is_discarded()) json["data"] = Json::object();
  json["fingerprint"] = p.fingerprint;
  json["instructions"] = p.instructions;
  if (!p.plugins.empty()) json["plugins"] = p.plugins;
  json["exactness"] = p.exactness;
  json["best"] = to_json(p.best);
  json["stop_best"] = to_json(p.stop_best);
  json["evaluations_without_improvement"] = p.evaluations_without_improvement;
  if (!p.schedule_best.metric.empty() || p.schedule_memory != ScheduleMemory{}) json["schedule"] = schedule_json(p);
  json["finished"] = p.finished;
  if (p.learning_rate_factor != 1) json["learning_rate_factor"] = p.learning_rate_factor;
  json["metrics"] = Json::object();
  for (const auto& [name, value] : p.metrics) json["metrics"][name] = write_double(value);
  if (p.evaluation_due) json["evaluation_due"] = true;
  if (p.loss_scale.scale > 0) json["loss_scale"] = to_json(p.loss_scale);
  if (p.averaged > 0) json["averaged"] = p.averaged;
  json["metadata"] = p.metadata;
}

Progress read_progress(const Json& json) {
  Progress p;
  p.step = integer_of<std::int64_t>(json.at("step"));
  p.samples = integer_of<std::int64_t>(json.at("samples"));
  p.seed = integer_of<std::uint64_t>(json.at("seed"));
  p.micro_batches = integer_of<std::int64_t>(json.at("micro_batches"));
  json.at("job").get_to(p.job);
  json.at("job_digest").get_to(p.job_digest);
  for (const Json& earlier : json.value("earlier_settings", Json::array())) {
    p.earlier_settings.push_back({integer_of<std::int64_t>(earlier.at("until")), earlier.at("job").get<std::string>()});
  }
  json.at("data_digest").get_to(p.data_digest);
  if (json.contains("data")) p.schema = json.at("data").dump();
  json.at("fingerprint").get_to(p.fingerprint);
  p.instructions = json.value("instructions", std::string());
  p.plugins = json.value("plugins", std::string());
  p.exactness = json.value("exactness", std::string());
  p.best = read_best(json, "best");
  p.stop_best = read_best(json, "stop_best");
  p.evaluations_without_improvement = integer_of<std::int64_t>(json.at("evaluations_without_improvement"));
  read_schedule(json, p);
  json.at("finished").get_to(p.finished);
  p.learning_rate_factor = json.value("learning_rate_factor", 1.0);
  for (const auto& [name, value] : json.at("metrics").items()) p.metrics[name] = read_double(value);
  p.evaluation_due = json.value("evaluation_due", false);
  p.loss_scale = read_loss_scale(json);
  if (json.contains("averaged")) p.averaged = integer_of<std::int64_t>(json.at("averaged"));
  if (json.contains("metadata")) json.at("metadata").get_to(p.metadata);
  return p;
}

void write_contents(const Manifest& manifest, Json& json) {
  json["files"] = Json::object();
  for (const auto& [name, file] : manifest.files) {
    Json& entry = json["files"][name] = {{"bytes", file.bytes}};
    if (!file.header_sha256.empty()) entry["header_sha256"] = file.header_sha256;
    if (!file.sha256.empty()) entry["sha256"] = file.sha256;
  }
  json["tensors"] = Json::object();
  for (const auto& tensor : manifest.tensors) {
    Json pieces = Json::array();
    for (const auto& piece : tensor.pieces) {
      pieces.push_back({{"file", piece.file}, {"begin", piece.begin}, {"end", piece.end}, {"sha256", piece.sha256}});
    }
    json["tensors"][tensor.name] = {{"shape", tensor.shape}, {"pieces", std::move(pieces)}};
  }
}

SavedTensor read_tensor(const std::string& name, const Json& json) {
  SavedTensor tensor{name, shape_of(json.at("shape")), {}};
  for (const auto& piece : json.at("pieces")) {
    tensor.pieces.push_back({piece.at("file").get<std::string>(), integer_of<std::int64_t>(piece.at("begin")),
                             integer_of<std::int64_t>(piece.at("end")), piece.at("sha256").get<std::string>()});
  }
  return tensor;
}

void read_contents(const Json& json, Manifest& manifest) {
  for (const auto& [name, entry] : json.at("files").items()) {
    manifest.files[name] = {integer_of<std::uint64_t>(entry.at("bytes")), entry.value("header_sha256", std::string()),
                            entry.value("sha256", std::string())};
  }
  if (!json.contains("tensors")) return;
  for (const auto& [name, tensor] : json.at("tensors").items()) manifest.tensors.push_back(read_tensor(name, tensor));
}

/// Nothing outside the checkpoint's directory is ever read, whatever a manifest says.
bool files_are_known(const Manifest& manifest) {
  for (const auto& [name, file] : manifest.files) {
    if (!is_plain_name(name)) return false;
  }
  for (const auto& tensor : manifest.tensors) {
    for (const auto& piece : tensor.pieces) {
      if (!manifest.files.contains(piece.file)) return false;
    }
  }
  return true;
}

/// Whether the SHA-256 of a sealed text does not match; format 1 had no seal.
bool seal_is_broken(std::string_view text, const Json& json) {
  const auto at = text.rfind(kSealKey);
  return at == std::string_view::npos || json.value("manifest_sha256", std::string()) != sha256(text.substr(0, at));
}

}  // namespace

std::string slice_name(const std::string& tensor, std::int64_t begin, std::int64_t end) {
  return fmt::format("{}[{}:{}]", tensor, begin, end);
}

std::string piece_name(const SavedTensor& tensor, const SavedPiece& piece) {
  return tensor.pieces.size() == 1 ? tensor.name : slice_name(tensor.name, piece.begin, piece.end);
}

std::string to_text(const Manifest& manifest) {
  Json json = {{"format", manifest.format}};
  write_progress(manifest.progress, json);
  write_contents(manifest, json);
  std::string text = json.dump(1, ' ', false, Json::error_handler_t::replace);
  text.resize(text.size() - 2);  // "\n}"
  text += ",\n ";
  return fmt::format("{}{}: \"{}\"\n}}\n", text, kSealKey, sha256(text));
}

Manifest parse_manifest(std::string_view text, const std::string& path) {
  const Json json = nests_too_deep(text) ? Json() : Json::parse(text, nullptr, false);
  if (!json.is_object()) throw Error(ExitCode::data, path + ": damaged: it is not the JSON that was written");
  try {
    Manifest manifest;
    manifest.format = integer_of<int>(json.at("format"));
    if (manifest.format < 1 || manifest.format > kCheckpointFormat) {
      throw Error(ExitCode::usage, fmt::format("{}: expected format 1 to {}, found {}: use the lockstep that wrote it, "
                                               "or a newer one",
                                               path, kCheckpointFormat, manifest.format));
    }
    if (manifest.format > 1 && seal_is_broken(text, json)) {
      throw Error(ExitCode::data, path + ": damaged: its SHA-256 is not the one in its last line");
    }
    manifest.progress = read_progress(json);
    read_contents(json, manifest);
    if (!files_are_known(manifest))
      throw Error(ExitCode::data, path + ": damaged: it names files that it does not list");
    return manifest;
  } catch (const Json::exception&) {
    throw Error(ExitCode::data, path + ": damaged: it lacks what a manifest holds");
  }
}

}  // namespace lockstep::checkpoint
