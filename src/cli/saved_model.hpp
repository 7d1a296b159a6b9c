// A trained model: what eval, predict and show read from a run directory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "checkpoint/checkpoint.hpp"
#include "exec/parameters.hpp"
#include "input/prepared_data.hpp"
#include "lockstep/communicator.hpp"
#include "lockstep/graph.hpp"
#include "lockstep/job.hpp"

namespace lockstep::cli {

struct SavedModel {
  std::string path;       ///< of the checkpoint
  std::int64_t step = 0;  ///< -1: a safetensors file, which does not say
  exec::TensorBlock parameters, states;
};

inline constexpr const char* kCheckpointHelp =
    "newest, best, a checkpoint's directory, or a .safetensors file; newest: of the job's run directory";

/// What was chosen, verified: a checkpoint, or the bytes of a .safetensors file.
struct SavedFiles {
  std::string path;
  std::optional<checkpoint::Checkpoint> checkpoint;
  std::string weights;  ///< where there is no checkpoint
};

/// `which`: "newest", "best" (as `checkpoint.best` chose), or a path. Rank 0 reads, the others are told. Throws
/// Error(data) when there is none, or when it is damaged.
[[nodiscard]] SavedFiles read_saved_files(const std::string& which, const Job& job, Communicator& communicator);

/// What the checkpoint remembers of the training data; nothing for a bare .safetensors file, and
/// for checkpoints that had no memory yet.
[[nodiscard]] std::optional<input::PreparedData> remembered_data(const SavedFiles& files, const Job& job,
                                                                 const AugmentRegistry& registry);

/// On every rank alike. Throws Error(data) when the checkpoint does not fit the graph.
[[nodiscard]] SavedModel load_saved_model(const SavedFiles& files, const Graph& graph, const Job& job,
                                          Communicator& communicator);

}  // namespace lockstep::cli
