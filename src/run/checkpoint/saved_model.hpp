// The model of a checkpoint or of a .safetensors file, and the job of a run: what is read when nothing is trained.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "lockstep/communicator.hpp"
#include "lockstep/graph.hpp"
#include "lockstep/job.hpp"
#include "run/checkpoint/checkpoint.hpp"
#include "run/checkpoint/safetensors.hpp"
#include "run/checkpoint/whole_model.hpp"
#include "step/exec/parameters.hpp"
#include "step/optim/updater.hpp"

namespace lockstep::checkpoint {

/// The job that a run directory's run, or a checkpoint, was trained with, plus overrides. Throws Error(data) if there
/// is none.
[[nodiscard]] JobFile load_saved_job(const std::string& directory, const std::vector<std::string>& overrides,
                                     const config::Catalogue& catalogue, bool need_data);

/// What that job names under `plugins`, as config::plugins_of().
[[nodiscard]] std::vector<config::PluginPath> plugins_of_saved_job(const std::string& directory,
                                                                   const std::vector<std::string>& overrides);

/// The verified content of what was chosen: a checkpoint, or the bytes of a .safetensors file.
struct SavedFiles {
  std::string path;
  std::string choice;  ///< on rank 0: "newest" or "best"; empty: it was given by its path
  std::optional<Checkpoint> checkpoint;
  std::string weights;  ///< if there is no checkpoint
};

/// `which`: as choose_checkpoint(), or a path. Rank 0 reads, and sends it to the other ranks. Throws Error(data) if
/// there is none, or if it is damaged.
[[nodiscard]] SavedFiles read_saved_files(const std::string& which, const Job& job, Communicator& communicator);

/// As Progress::schema, which files that lockstep writes have, too; empty: the file is another's.
[[nodiscard]] std::string schema_of(const SavedFiles& files);

struct SavedModel {
  std::string path;       ///< of the checkpoint or the file
  std::string choice;     ///< as SavedFiles::choice
  std::int64_t step = 0;  ///< -1: a safetensors file, which has none
  exec::TensorBlock parameters, states;
  std::string schema = {};  ///< as schema_of()
};

/// The same on every rank. The parameters are their average where the job evaluates it (AverageOptions). Throws
/// Error(data) if the checkpoint does not fit the graph.
[[nodiscard]] SavedModel load_saved_model(const SavedFiles& files, const Graph& graph, const Job& job,
                                          Communicator& communicator);

/// The model as the bytes of a .safetensors file, every tensor whole, without the optimizer.
[[nodiscard]] std::string safetensors_of(const SavedModel& model);
/// `average`: with the average of the parameters, which the checkpoint must have.
[[nodiscard]] std::string safetensors_of(const Checkpoint& checkpoint, bool average = false);

/// How many tensors of the whole model come from the file and how many have initial values; whose names the file uses.
struct Initialized {
  std::int64_t from_file = 0, first_values = 0;
  WeightNames names = WeightNames::automatic;
  std::string chosen = {};                ///< "its best checkpoint, step-00000090", of a run's directory
  std::string schema;                     ///< as schema_of(), of the model that the file is of
  std::vector<std::string> outputs = {};  ///< a model of transformers: what its outputs are called, if that is known
};

/// Looks whether initialize_from_file() can do its work, by the names and shapes in the file. `graph`: of the whole
/// model. Throws as it does.
Initialized check_initialization(const InitializeOptions& options, const Place& place, const Graph& graph);

/// Overwrites the parameters and states that the job's patterns match (all, without patterns). Throws Error(data) if
/// the file lacks one, has it in another shape, or in an unknown order; Error(configuration) if a pattern matches none;
/// `place` is where the patterns are in the job file. Checked for the whole model, with the same result on all ranks;
/// `own` is this rank's part of it. `advance` is called before each tensor that is read, and may throw.
Initialized initialize_from_file(const InitializeOptions& options, const Place& place, const Graph& graph,
                                 const WholeModel& whole, optim::Model& own, const std::function<void()>& advance);

}  // namespace lockstep::checkpoint
