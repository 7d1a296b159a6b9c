// A trained model: what eval and predict read from a run directory.
#pragma once

#include <cstdint>
#include <string>

#include "exec/parameters.hpp"
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

/// `which`: "newest", "best" (as `checkpoint.best` chose), or a path. Rank 0 reads, the others are told. Throws
/// Error(data) when there is none, when it is damaged, or when it does not fit the graph.
[[nodiscard]] SavedModel load_saved_model(const std::string& which, const Job& job, const Graph& graph,
                                          Communicator& communicator);

}  // namespace lockstep::cli
