// The model of a checkpoint or of a .safetensors file, and the job of a run: what is read when nothing is trained.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/whole_model.hpp"
#include "config/config.hpp"
#include "exec/parameters.hpp"
#include "lockstep/communicator.hpp"
#include "lockstep/graph.hpp"
#include "lockstep/job.hpp"
#include "optim/updater.hpp"

namespace lockstep::checkpoint {

/// The job of a run's directory, or of one checkpoint's, as it was trained, with overrides. Throws Error(data) where
/// there is none.
[[nodiscard]] JobFile load_saved_job(const std::string& directory, const std::vector<std::string>& overrides,
                                     const config::Catalogue& catalogue, bool need_data);

/// What was chosen, verified: a checkpoint, or the bytes of a .safetensors file.
struct SavedFiles {
  std::string path;
  std::optional<Checkpoint> checkpoint;
  std::string weights;  ///< where there is no checkpoint
};

/// `which`: "newest", "best" (as `checkpoint.best` chose), or a path. Rank 0 reads, the others get it from there.
/// Throws Error(data) when there is none, or when it is damaged.
[[nodiscard]] SavedFiles read_saved_files(const std::string& which, const Job& job, Communicator& communicator);

struct SavedModel {
  std::string path;       ///< of the checkpoint or the file
  std::int64_t step = 0;  ///< -1: a safetensors file, which does not say
  exec::TensorBlock parameters, states;
};

/// On every rank alike. Throws Error(data) when the checkpoint does not fit the graph.
[[nodiscard]] SavedModel load_saved_model(const SavedFiles& files, const Graph& graph, const Job& job,
                                          Communicator& communicator);

/// The model alone, every tensor whole, as the bytes of a .safetensors file.
[[nodiscard]] std::string safetensors_of(const SavedModel& model);
[[nodiscard]] std::string safetensors_of(const Checkpoint& checkpoint);

/// Tensors of the whole model, and whose names they have in the file.
struct Initialized {
  std::int64_t from_file = 0, first_values = 0;
  WeightNames names = WeightNames::automatic;
};

/// Overwrites the parameters and states that the job's patterns choose (all without patterns). Throws Error(data) when
/// the file lacks one, has it in another shape, or in an order that nobody says, Error(configuration) when a pattern
/// chooses none; `place` is where the patterns were written. Judged by the whole model, alike on all ranks; `own` is
/// what this rank has of it.
Initialized initialize_from_file(const InitializeOptions& options, const Place& place, const Graph& graph,
                                 const WholeModel& whole, optim::Model& own);

}  // namespace lockstep::checkpoint
