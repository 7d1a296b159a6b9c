// Checkpoints: a directory per step.
//
//   <run>/checkpoints/step-00000120/model.safetensors       parameters and states, by name
//                                   optimizer.safetensors   "<parameter>:<state>"
//                                   manifest.json           written last: it is the commit
//
// Files are written under temporary names, synced and renamed; the manifest holds their sizes and SHA-256, so a
// torn or damaged checkpoint is never loaded.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "train/updater.hpp"

namespace lockstep::train {

/// The best that a metric was in an evaluation.
struct BestValue {
  std::string metric;  ///< empty: not evaluated yet
  double value = 0;
};

/// All that the bits of the rest of the run depend on, besides the tensors.
struct Progress {
  std::int64_t step = 0;  ///< steps done
  std::int64_t samples = 0;
  std::uint64_t seed = 0;
  std::int64_t shards = 0;
  std::string job_digest, job;  ///< canonical form
  std::string data_digest, fingerprint, instructions;
  std::string data_facts;  ///< JSON: what using the model needs to know of its data (data_facts.hpp)
  std::string exactness;   ///< "bitwise" as long as one fingerprint computed all of it
  BestValue best;          ///< of `checkpoint.best`
  BestValue stop_best;     ///< of `early_stop.metric`
  std::int64_t evaluations_without_improvement = 0;
  bool finished = false;                  ///< by early stopping, before the last step
  std::map<std::string, double> metrics;  ///< of the last evaluation
};

/// The bytes of a checkpoint: what rank 0 reads and broadcasts.
struct CheckpointFiles {
  std::string path, manifest, model, optimizer;
};

/// Writes and commits. Throws Error(infrastructure) that names the file and the system's reason.
void write_checkpoint(const std::string& directory, const Progress& progress, const Model& model,
                      const std::vector<std::string>& state_names);

/// Step directories under `checkpoints`, newest first; only those with a manifest.
[[nodiscard]] std::vector<std::string> list_checkpoints(const std::string& checkpoints);

/// Reads and verifies; nullopt with the reason in `why` when it is damaged.
[[nodiscard]] std::optional<CheckpointFiles> read_checkpoint(const std::string& directory, std::string& why);

/// The job that the manifest holds, in canonical form; nullopt with the reason in `why` when it has none.
[[nodiscard]] std::optional<std::string> job_of_manifest(const std::string& manifest, std::string& why);

[[nodiscard]] Progress parse_progress(const CheckpointFiles& files);
/// Fills the model; throws Error(data) when a tensor is missing or of another shape.
void restore(const CheckpointFiles& files, const std::vector<std::string>& state_names, Model& model);

/// Name of the step directory that `best` says, or "".
[[nodiscard]] std::string best_checkpoint(const std::string& checkpoints);

/// Removes all but the newest `keep` of them and `best`.
void prune_checkpoints(const std::string& checkpoints, std::int64_t keep, const std::string& best);

/// Writes, syncs and renames into place.
void write_file(const std::string& path, std::string_view bytes);

}  // namespace lockstep::train
