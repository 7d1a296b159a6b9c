#include "checkpoint/saved_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <span>

#include "checkpoint/reader.hpp"
#include "checkpoint/run_directory.hpp"
#include "checkpoint/safetensors.hpp"
#include "checkpoint/weights_file.hpp"
#include "comm/transport/work_together.hpp"
#include "core/glob.hpp"
#include "core/nearest.hpp"
#include "core/whole_file.hpp"
#include "lockstep/error.hpp"

namespace lockstep::checkpoint {

namespace {

namespace fs = std::filesystem;

[[noreturn]] void none_in(const std::string& directory, const std::string& detail) {
  throw Error(ExitCode::data,
              fmt::format("{}: expected a checkpoint, found {}; train the job first (lockstep train), or "
                          "give one with --checkpoint PATH",
                          directory, detail));
}

Checkpoint newest(const std::string& directory) {
  std::string why, damaged;
  for (const auto& path : list_checkpoints(directory)) {
    if (auto checkpoint = read_checkpoint(path, why)) return *checkpoint;
    damaged += (damaged.empty() ? "" : "; ") + why;
  }
  none_in(directory, damaged.empty() ? "none" : "only damaged ones: " + damaged);
}

Checkpoint best(const std::string& directory) {
  const std::string name = best_checkpoint(directory);
  if (name.empty()) {
    throw Error(ExitCode::data, fmt::format("{}: expected a best checkpoint, found none; set checkpoint.best to a "
                                            "metric when training, or omit --checkpoint best",
                                            directory));
  }
  std::string why;
  if (auto checkpoint = read_checkpoint(directory + "/" + name, why)) return *checkpoint;
  none_in(directory, why);
}

Checkpoint one_at(const std::string& path) {
  std::string why;
  if (auto checkpoint = read_checkpoint(path, why)) return *checkpoint;
  throw Error(ExitCode::data,
              fmt::format("--checkpoint: expected newest, best, a checkpoint's directory or a .safetensors "
                          "file; {}",
                          why));
}

SavedFiles find(const std::string& which, const Job& job) {
  SavedFiles found{.path = which, .checkpoint = {}, .weights = {}};
  const std::string directory = job.run_directory + "/checkpoints";
  if (which == "newest") {
    found.checkpoint = newest(directory);
  } else if (which == "best") {
    found.checkpoint = best(directory);
  } else if (fs::is_regular_file(which)) {
    auto weights = read_whole_file(which);
    if (!weights) throw Error(ExitCode::data, fmt::format("--checkpoint: cannot open '{}'", which));
    found.weights = std::move(*weights);
  } else {
    found.checkpoint = one_at(which);
  }
  if (found.checkpoint) found.path = found.checkpoint->path;
  return found;
}

void fill(const WeightsFile& file, exec::TensorBlock& block) {
  for (std::size_t i = 0; i < block.size(); ++i) {
    file.require(block.name(i), block.shape(i));
    file.copy(block.name(i), block.shape(i), block.at(i));
  }
}

// A state of the optimizer has the name of another tensor before a colon.
bool is_state_of_optimizer(const std::string& name, const Checkpoint& checkpoint) {
  const auto colon = name.rfind(':');
  if (colon == std::string::npos) return false;
  const auto& tensors = checkpoint.manifest.tensors;
  return std::any_of(tensors.begin(), tensors.end(),
                     [&](const auto& tensor) { return tensor.name == name.substr(0, colon); });
}

std::string model_file(const std::vector<NamedSpan>& tensors) {
  return to_safetensors(tensors, {{"format", "lockstep"}});
}

}  // namespace

JobFile load_saved_job(const std::string& directory, const std::vector<std::string>& overrides,
                       const config::Catalogue& catalogue, bool need_data) {
  const bool one = fs::exists(directory + "/manifest.json");
  std::string why = "no checkpoints in it";
  for (const auto& path : one ? std::vector{directory} : list_checkpoints(directory + "/checkpoints")) {
    const std::string manifest = path + "/manifest.json";
    const auto text = job_of_manifest(manifest, why);
    if (!text) continue;
    JobFile job = config::load_text(*text, manifest, overrides, catalogue, need_data);
    const auto moves = [](const std::string& word) { return word.starts_with("run_directory="); };
    if (!one && std::none_of(overrides.begin(), overrides.end(), moves)) job.run_directory = directory;
    return job;
  }
  throw Error(ExitCode::data,
              fmt::format("{}: expected a job file, or the directory of a run or checkpoint, found a folder with {}",
                          directory, why));
}

SavedFiles read_saved_files(const std::string& which, const Job& job, Communicator& communicator) {
  SavedFiles files{.path = which, .checkpoint = {}, .weights = {}};
  comm::work_of_first_rank(communicator, {"checkpoint", 0, job.timeout()}, [&] { files = find(which, job); });
  files.checkpoint = broadcast_checkpoint(std::move(files.checkpoint), communicator, job.timeout());
  if (files.checkpoint) {
    files.path = files.checkpoint->path;
    return files;
  }
  const Operation operation{"checkpoint", 0, job.timeout()};
  std::uint64_t size = files.weights.size();
  communicator.broadcast(std::as_writable_bytes(std::span(&size, 1)), 0, operation);
  files.weights.resize(size);
  communicator.broadcast(std::as_writable_bytes(std::span(files.weights)), 0, operation);
  return files;
}

SavedModel load_saved_model(const SavedFiles& files, const Graph& graph, const Job& job, Communicator& communicator) {
  SavedModel model{.path = files.path,
                   .step = files.checkpoint ? files.checkpoint->manifest.progress.step : -1,
                   .parameters = {graph, graph.parameters},
                   .states = {graph, graph.states}};
  if (!files.checkpoint) {
    const WeightsFile file(SafetensorsFile::parse(files.weights, files.path), graph,
                           job.initialize ? job.initialize->names : WeightNames::automatic,
                           "write it with metadata={'format': 'pt'} for PyTorch's order, {'format': 'lockstep'} for "
                           "lockstep's");
    fill(file, model.parameters);
    fill(file, model.states);
    return model;
  }
  Targets targets;
  add_targets(model.parameters, "", targets);
  add_targets(model.states, "", targets);
  CheckpointReader reader(communicator, job.timeout());
  const auto faults = reader.read(*files.checkpoint);
  if (!faults.empty()) throw Error(ExitCode::data, faults.front());
  reader.load(*files.checkpoint, targets);
  return model;
}

std::string safetensors_of(const SavedModel& model) {
  std::vector<NamedSpan> tensors;
  for (const auto* block : {&model.parameters, &model.states}) {
    for (std::size_t i = 0; i < block->size(); ++i) tensors.push_back({block->name(i), block->shape(i), block->at(i)});
  }
  return model_file(tensors);
}

std::string safetensors_of(const Checkpoint& checkpoint) {
  std::vector<std::vector<float>> values;
  std::vector<NamedSpan> tensors;
  Targets targets;
  for (const auto& tensor : checkpoint.manifest.tensors) {
    if (is_state_of_optimizer(tensor.name, checkpoint)) continue;
    values.emplace_back(static_cast<std::size_t>(elements(tensor.shape)));
    targets[tensor.name] = {tensor.shape, values.back()};
    tensors.push_back({tensor.name, tensor.shape, values.back()});
  }
  load(checkpoint, targets);
  return model_file(tensors);
}

namespace {

void require_matches(const InitializeOptions& options, const Place& place, const std::vector<std::string>& names) {
  for (const auto& pattern : options.only) {
    if (std::any_of(names.begin(), names.end(), [&](const auto& name) { return matches(pattern, name); })) continue;
    const std::string where = place.text();
    throw Error(ExitCode::configuration,
                fmt::format("{}: expected a pattern over the model's parameters, but none matches '{}'{}",
                            where.empty() ? "job.initialize.only" : where, pattern, did_you_mean(pattern, names)));
  }
}

}  // namespace

Initialized initialize_from_file(const InitializeOptions& options, const Place& place, const Graph& graph,
                                 const WholeModel& whole, optim::Model& own) {
  const auto chosen = [&](const std::string& name) { return options.only.empty() || matches_any(options.only, name); };
  const WeightsFile file(SafetensorsFile::read(options.from), graph, options.names,
                         "set initialize.names to torch or lockstep");
  std::vector<std::string> names;
  for (const auto* tensors : {&whole.parameters, &whole.states}) {
    for (const auto& tensor : *tensors) names.push_back(tensor.name);
  }
  require_matches(options, place, names);
  Initialized result{.names = file.names()};
  for (const auto* tensors : {&whole.parameters, &whole.states}) {
    for (const auto& tensor : *tensors) {
      ++(chosen(tensor.name) ? result.from_file : result.first_values);
      if (chosen(tensor.name)) file.require(tensor.name, tensor.shape);
    }
  }
  for (auto* block : {&own.parameters, &own.states}) {
    for (std::size_t i = 0; i < block->size(); ++i) {
      if (!chosen(block->name(i))) continue;
      for (const exec::Extent& extent : block->own(i)) {
        file.copy(block->name(i), block->shape(i), block->at(i, extent), extent.begin);
      }
    }
  }
  return result;
}

}  // namespace lockstep::checkpoint
