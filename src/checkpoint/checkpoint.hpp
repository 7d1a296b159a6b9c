// Reading checkpoints: a directory per step.
//
//   <run>/checkpoints/step-00000120/model.safetensors       parameters and states, by name
//                                   optimizer.safetensors   "<parameter>:<state>"
//                                   manifest.json           written last: it is the commit
//                     best                                  name of the best one
//
// Large models have several files of each kind (checkpoint_layout.hpp). Every byte is held against the SHA-256 of the
// manifest when it is loaded, so a torn or damaged checkpoint never is. checkpoint_writer.hpp writes them,
// checkpoint_reader.hpp reads them on all ranks together.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/manifest.hpp"
#include "checkpoint/safetensors.hpp"
#include "exec/parameters.hpp"

namespace lockstep::checkpoint {

struct Checkpoint {
  std::string path;
  Manifest manifest;
};

/// "step-00000120"
[[nodiscard]] std::string checkpoint_name(std::int64_t step);
/// The step of such a path; nullopt for any other.
[[nodiscard]] std::optional<std::int64_t> step_of(const std::string& path);

// What is not there, or is damaged, is reported as such; every other error of the file system is thrown
// (input_files.hpp), so that a disk that does not answer for a moment costs no checkpoint.

/// Step directories under `checkpoints`, newest first; only those with a manifest.
[[nodiscard]] std::vector<std::string> list_checkpoints(const std::string& checkpoints);

/// Name of the step directory that `best` says, or "".
[[nodiscard]] std::string best_checkpoint(const std::string& checkpoints);

/// Reads the manifest alone. Throws Error(data).
[[nodiscard]] Checkpoint open_checkpoint(const std::string& directory);

/// The job that the manifest at this path holds, in canonical form; nullopt with the reason in `why` when it has none.
[[nodiscard]] std::optional<std::string> job_of_manifest(const std::string& manifest, std::string& why);

/// One of its files, verified. Throws Error(data) that names the file, and the tensor if one is damaged. `read_some` is
/// called as it goes on.
[[nodiscard]] SafetensorsFile read_part(const Checkpoint& checkpoint, const std::string& file,
                                        const std::function<void()>& read_some = {});

/// What is wrong with its files, a message each; empty when all is well. Throws where one cannot be read.
[[nodiscard]] std::vector<std::string> find_damage(const Checkpoint& checkpoint);

/// Opens and verifies all; nullopt with the reasons in `why` when it is damaged.
[[nodiscard]] std::optional<Checkpoint> read_checkpoint(const std::string& directory, std::string& why);

/// Where tensors of a checkpoint go, by name.
struct Target {
  Shape shape;
  std::span<float> values;
  std::optional<std::vector<exec::Extent>> own = {};  ///< the elements that are wanted; none: all
};
using Targets = std::map<std::string, Target>;
void add_targets(const exec::TensorBlock& block, const std::string& suffix, Targets& targets);

/// Fills the targets from all pieces, whatever files hold them; reads only files that are needed. Throws
/// Error(data) when a tensor is missing, of another shape, or damaged.
void load(const Checkpoint& checkpoint, const Targets& targets);

/// Elements that go from a tensor of a file to their place.
struct Copy {
  std::string name;  ///< in its file
  Shape shape;
  std::int64_t first = 0;  ///< of its elements; the others follow
  std::span<float> to;
};
/// What to copy out of each file. Throws as load() does, but for damage.
[[nodiscard]] std::map<std::string, std::vector<Copy>> plan_copies(const Checkpoint& checkpoint,
                                                                   const Targets& targets);

}  // namespace lockstep::checkpoint
