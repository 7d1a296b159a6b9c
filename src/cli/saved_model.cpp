#include "cli/saved_model.hpp"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "lockstep/error.hpp"
#include "train/data_facts.hpp"
#include "train/run_directory.hpp"
#include "train/safetensors.hpp"

namespace lockstep::cli {

namespace {

namespace fs = std::filesystem;
using train::CheckpointFiles;

[[noreturn]] void none_in(const std::string& directory, const std::string& detail) {
  throw Error(ExitCode::data,
              fmt::format("{}: expected a checkpoint, found {}; train the job first (lockstep train), or "
                          "give one with --checkpoint PATH",
                          directory, detail));
}

CheckpointFiles newest(const std::string& directory) {
  std::string why, damaged;
  for (const auto& path : train::list_checkpoints(directory)) {
    if (auto files = train::read_checkpoint(path, why)) return *files;
    damaged += (damaged.empty() ? "" : "; ") + why;
  }
  none_in(directory, damaged.empty() ? "none" : "only damaged ones: " + damaged);
}

CheckpointFiles best(const std::string& directory) {
  const std::string name = train::best_checkpoint(directory);
  if (name.empty()) {
    throw Error(ExitCode::data,
                fmt::format("{}: expected a best checkpoint, found none; set checkpoint.best to a metric "
                            "when training, or leave out --checkpoint best",
                            directory));
  }
  std::string why;
  if (auto files = train::read_checkpoint(directory + "/" + name, why)) return *files;
  none_in(directory, why);
}

CheckpointFiles weights_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error(ExitCode::data, fmt::format("--checkpoint: cannot open '{}'", path));
  CheckpointFiles files;
  files.path = path;
  files.model.assign(std::istreambuf_iterator<char>(file), {});
  return files;
}

CheckpointFiles find(const std::string& which, const Job& job) {
  const std::string directory = job.run_directory + "/checkpoints";
  if (which == "newest") return newest(directory);
  if (which == "best") return best(directory);
  if (fs::is_regular_file(which)) return weights_file(which);
  std::string why;
  if (auto files = train::read_checkpoint(which, why)) return *files;
  throw Error(ExitCode::data,
              fmt::format("--checkpoint: expected newest, best, a checkpoint's directory or a .safetensors "
                          "file; {}",
                          why));
}

void fill(const train::SafetensorsFile& file, exec::TensorBlock& block) {
  for (std::size_t i = 0; i < block.size(); ++i) file.copy(block.name(i), block.shape(i), block.at(i));
}

}  // namespace

CheckpointFiles read_saved_files(const std::string& which, const Job& job, Communicator& communicator) {
  std::optional<CheckpointFiles> files;
  if (communicator.rank() == 0) {
    files = find(which, job);
    files->optimizer.clear();  // not needed here: not sent
  }
  const auto timeout = std::chrono::milliseconds(static_cast<std::int64_t>(job.timeout_seconds * 1000));
  return *train::broadcast_files(std::move(files), communicator, timeout);
}

std::optional<train::PreparedData> remembered_data(const CheckpointFiles& files, const Job& job,
                                                   const AugmentRegistry& registry) {
  if (files.manifest.empty()) return std::nullopt;
  return train::recall_data(train::parse_progress(files).data_facts, job, registry, files.path + "/manifest.json");
}

SavedModel load_saved_model(const CheckpointFiles& files, const Graph& graph) {
  SavedModel model{.path = files.path,
                   .step = files.manifest.empty() ? -1 : train::parse_progress(files).step,
                   .parameters = {graph, graph.parameters},
                   .states = {graph, graph.states}};
  const auto file = train::SafetensorsFile::parse(files.model, files.path);
  fill(file, model.parameters);
  fill(file, model.states);
  return model;
}

}  // namespace lockstep::cli
