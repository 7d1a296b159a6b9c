#include "cli/saved_model.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <span>

#include "checkpoint/reader.hpp"
#include "checkpoint/run_directory.hpp"
#include "checkpoint/safetensors.hpp"
#include "comm/transport/work_together.hpp"
#include "core/whole_file.hpp"
#include "input/data_facts.hpp"
#include "lockstep/error.hpp"
#include "train/run_context.hpp"

namespace lockstep::cli {

namespace {

namespace fs = std::filesystem;
using checkpoint::Checkpoint;

[[noreturn]] void none_in(const std::string& directory, const std::string& detail) {
  throw Error(ExitCode::data,
              fmt::format("{}: expected a checkpoint, found {}; train the job first (lockstep train), or "
                          "give one with --checkpoint PATH",
                          directory, detail));
}

Checkpoint newest(const std::string& directory) {
  std::string why, damaged;
  for (const auto& path : checkpoint::list_checkpoints(directory)) {
    if (auto checkpoint = checkpoint::read_checkpoint(path, why)) return *checkpoint;
    damaged += (damaged.empty() ? "" : "; ") + why;
  }
  none_in(directory, damaged.empty() ? "none" : "only damaged ones: " + damaged);
}

Checkpoint best(const std::string& directory) {
  const std::string name = checkpoint::best_checkpoint(directory);
  if (name.empty()) {
    throw Error(ExitCode::data,
                fmt::format("{}: expected a best checkpoint, found none; set checkpoint.best to a metric "
                            "when training, or leave out --checkpoint best",
                            directory));
  }
  std::string why;
  if (auto checkpoint = checkpoint::read_checkpoint(directory + "/" + name, why)) return *checkpoint;
  none_in(directory, why);
}

Checkpoint one_at(const std::string& path) {
  std::string why;
  if (auto checkpoint = checkpoint::read_checkpoint(path, why)) return *checkpoint;
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

void fill(const checkpoint::SafetensorsFile& file, exec::TensorBlock& block) {
  for (std::size_t i = 0; i < block.size(); ++i) file.copy(block.name(i), block.shape(i), block.at(i));
}

}  // namespace

SavedFiles read_saved_files(const std::string& which, const Job& job, Communicator& communicator) {
  SavedFiles files{.path = which, .checkpoint = {}, .weights = {}};
  comm::work_of_first_rank(communicator, {"checkpoint", 0, job.timeout()}, [&] { files = find(which, job); });
  files.checkpoint = checkpoint::broadcast_checkpoint(std::move(files.checkpoint), communicator, job.timeout());
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

std::optional<input::PreparedData> remembered_data(const SavedFiles& files, const Job& job,
                                                   const AugmentRegistry& registry) {
  if (!files.checkpoint) return std::nullopt;
  const auto& progress = files.checkpoint->manifest.progress;
  if (progress.data_facts == "{}") return std::nullopt;  // the first checkpoints had none
  return input::recall_data(progress.data_facts, job.data, job.seed, registry, files.path + "/manifest.json");
}

SavedModel load_saved_model(const SavedFiles& files, const Graph& graph, const Job& job, Communicator& communicator) {
  SavedModel model{.path = files.path,
                   .step = files.checkpoint ? files.checkpoint->manifest.progress.step : -1,
                   .parameters = {graph, graph.parameters},
                   .states = {graph, graph.states}};
  if (!files.checkpoint) {
    const auto file = checkpoint::SafetensorsFile::parse(files.weights, files.path);
    fill(file, model.parameters);
    fill(file, model.states);
    return model;
  }
  checkpoint::Targets targets;
  checkpoint::add_targets(model.parameters, "", targets);
  checkpoint::add_targets(model.states, "", targets);
  checkpoint::CheckpointReader reader(communicator, job.timeout());
  const auto faults = reader.read(*files.checkpoint);
  if (!faults.empty()) throw Error(ExitCode::data, faults.front());
  reader.load(*files.checkpoint, targets);
  return model;
}

}  // namespace lockstep::cli
