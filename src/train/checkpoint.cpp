#include "train/checkpoint.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/digest.hpp"
#include "lockstep/error.hpp"
#include "train/safetensors.hpp"

namespace lockstep::train {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int kFormat = 1;

[[noreturn]] void failed(const std::string& what, const std::string& path) {
  throw Error(ExitCode::infrastructure, fmt::format("{}: cannot {}: {}", path, what, std::strerror(errno)));
}

class Descriptor {
 public:
  Descriptor(const std::string& path, int flags) : path_(path), fd_(::open(path.c_str(), flags, 0644)) {
    if (fd_ < 0) failed("open", path);
  }
  ~Descriptor() { ::close(fd_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  void write(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) failed("write", path_);
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
  }
  void sync() const {
    if (::fsync(fd_) != 0) failed("sync", path_);
  }

 private:
  std::string path_;
  int fd_;
};

std::optional<std::string> slurp(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) return std::nullopt;
  std::stringstream bytes;
  bytes << stream.rdbuf();
  return std::move(bytes).str();
}

std::vector<NamedSpan> spans_of(const exec::TensorBlock& block, const std::string& suffix) {
  std::vector<NamedSpan> list;
  for (std::size_t i = 0; i < block.size(); ++i) list.push_back({block.name(i) + suffix, block.shape(i), block.at(i)});
  return list;
}

std::string model_bytes(const Model& model) {
  auto tensors = spans_of(model.parameters, "");
  for (auto& state : spans_of(model.states, "")) tensors.push_back(std::move(state));
  return to_safetensors(tensors, {{"format", "lockstep"}});
}

std::string optimizer_bytes(const Model& model, const std::vector<std::string>& names) {
  std::vector<NamedSpan> tensors;
  for (std::size_t s = 0; s < names.size(); ++s) {
    for (auto& tensor : spans_of(model.optimizer[s], ":" + names[s])) tensors.push_back(std::move(tensor));
  }
  return to_safetensors(tensors, {{"format", "lockstep"}});
}

Json to_json(const BestValue& best) {
  return {{"metric", best.metric}, {"value", best.value}};
}

BestValue parse_best(const Json& json) {
  return {json.at("metric").get<std::string>(), json.at("value").get<double>()};
}

// JSON has no word for numbers that are not finite: they are written as null.
std::map<std::string, double> parse_metrics(const Json& json) {
  std::map<std::string, double> metrics;
  for (const auto& [name, value] : json.items()) {
    metrics[name] = value.is_null() ? std::nan("") : value.get<double>();
  }
  return metrics;
}

Json to_json(const Progress& p) {
  return {{"format", kFormat},
          {"step", p.step},
          {"samples", p.samples},
          {"seed", p.seed},
          {"shards", p.shards},
          {"job_digest", p.job_digest},
          {"job", p.job},
          {"data_digest", p.data_digest},
          {"data", Json::parse(p.data_facts)},
          {"fingerprint", p.fingerprint},
          {"instructions", p.instructions},
          {"exactness", p.exactness},
          {"best", to_json(p.best)},
          {"stop_best", to_json(p.stop_best)},
          {"evaluations_without_improvement", p.evaluations_without_improvement},
          {"finished", p.finished},
          {"metrics", p.metrics}};
}

}  // namespace

void write_file(const std::string& path, std::string_view bytes) {
  const std::string temporary = path + ".partial";
  {
    const Descriptor file(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC);
    file.write(bytes);
    file.sync();
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) failed("rename into place", path);
  Descriptor(fs::path(path).parent_path().string(), O_RDONLY | O_DIRECTORY | O_CLOEXEC).sync();
}

void write_checkpoint(const std::string& directory, const Progress& progress, const Model& model,
                      const std::vector<std::string>& state_names) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) throw Error(ExitCode::infrastructure, fmt::format("{}: cannot create: {}", directory, error.message()));
  // The same step written again (after a resume from an older one): uncommit it first.
  fs::remove(directory + "/manifest.json", error);
  Json manifest = to_json(progress);
  const auto add = [&](const std::string& name, const std::string& bytes) {
    write_file(directory + "/" + name, bytes);
    manifest["files"][name] = {{"bytes", bytes.size()}, {"sha256", sha256(bytes)}};
  };
  add("model.safetensors", model_bytes(model));
  add("optimizer.safetensors", optimizer_bytes(model, state_names));
  write_file(directory + "/manifest.json", manifest.dump(1) + "\n");
}

std::vector<std::string> list_checkpoints(const std::string& checkpoints) {
  std::vector<std::string> list;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(checkpoints, error)) {
    if (entry.path().filename().string().starts_with("step-") && fs::exists(entry.path() / "manifest.json")) {
      list.push_back(entry.path().string());
    }
  }
  std::sort(list.rbegin(), list.rend());
  return list;
}

std::optional<CheckpointFiles> read_checkpoint(const std::string& directory, std::string& why) {
  CheckpointFiles files;
  files.path = directory;
  const auto manifest = slurp(directory + "/manifest.json");
  if (!manifest) {
    why = directory + ": no manifest.json";
    return std::nullopt;
  }
  files.manifest = *manifest;
  const Json json = Json::parse(files.manifest, nullptr, false);
  if (json.is_discarded() || json.value("format", 0) != kFormat || !json.contains("files")) {
    why = directory + "/manifest.json: damaged, or of another version of lockstep";
    return std::nullopt;
  }
  for (const auto& [name, target] :
       {std::pair{"model.safetensors", &files.model}, {"optimizer.safetensors", &files.optimizer}}) {
    auto bytes = slurp(directory + "/" + name);
    const std::string wanted = json["files"][name].value("sha256", "");
    if (!bytes || sha256(*bytes) != wanted) {
      why = fmt::format("{}/{}: {}", directory, name, bytes ? "damaged: its SHA-256 is not the manifest's" : "missing");
      return std::nullopt;
    }
    *target = std::move(*bytes);
  }
  return files;
}

std::optional<std::string> job_of_manifest(const std::string& manifest, std::string& why) {
  const Json json = Json::parse(slurp(manifest).value_or(""), nullptr, false);
  if (json.is_object() && json.value("format", 0) == kFormat && json.contains("job")) return json["job"];
  why = manifest + ": damaged, or of another version of lockstep";
  return std::nullopt;
}

Progress parse_progress(const CheckpointFiles& files) {
  try {
    const Json json = Json::parse(files.manifest);
    Progress p;
    json.at("step").get_to(p.step);
    json.at("samples").get_to(p.samples);
    json.at("seed").get_to(p.seed);
    json.at("shards").get_to(p.shards);
    json.at("job_digest").get_to(p.job_digest);
    json.at("job").get_to(p.job);
    json.at("data_digest").get_to(p.data_digest);
    p.data_facts = json.at("data").dump();
    json.at("fingerprint").get_to(p.fingerprint);
    json.at("instructions").get_to(p.instructions);
    json.at("exactness").get_to(p.exactness);
    p.best = parse_best(json.at("best"));
    p.stop_best = parse_best(json.at("stop_best"));
    json.at("evaluations_without_improvement").get_to(p.evaluations_without_improvement);
    json.at("finished").get_to(p.finished);
    p.metrics = parse_metrics(json.at("metrics"));
    return p;
  } catch (const Json::exception& error) {
    throw Error(ExitCode::data, fmt::format("{}/manifest.json: {}", files.path, error.what()));
  }
}

void restore(const CheckpointFiles& files, const std::vector<std::string>& state_names, Model& model) {
  const auto fill = [](const SafetensorsFile& file, exec::TensorBlock& block, const std::string& suffix) {
    for (std::size_t i = 0; i < block.size(); ++i) file.copy(block.name(i) + suffix, block.shape(i), block.at(i));
  };
  const auto model_file = SafetensorsFile::parse(files.model, files.path + "/model.safetensors");
  fill(model_file, model.parameters, "");
  fill(model_file, model.states, "");
  const auto optimizer_file = SafetensorsFile::parse(files.optimizer, files.path + "/optimizer.safetensors");
  for (std::size_t s = 0; s < state_names.size(); ++s) fill(optimizer_file, model.optimizer[s], ":" + state_names[s]);
}

std::string best_checkpoint(const std::string& checkpoints) {
  std::string name = slurp(checkpoints + "/best").value_or("");
  if (!name.empty() && name.back() == '\n') name.pop_back();
  return name;
}

void prune_checkpoints(const std::string& checkpoints, std::int64_t keep, const std::string& best) {
  const auto list = list_checkpoints(checkpoints);
  std::error_code ignored;
  for (std::size_t i = static_cast<std::size_t>(std::max<std::int64_t>(keep, 1)); i < list.size(); ++i) {
    if (!best.empty() && fs::path(list[i]).filename() == best) continue;
    fs::remove(fs::path(list[i]) / "manifest.json", ignored);
    fs::remove_all(list[i], ignored);
  }
}

}  // namespace lockstep::train
