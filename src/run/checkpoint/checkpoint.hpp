// Reading checkpoints: a directory per step.
//
//   <run>/checkpoints/step-00000120/model.safetensors       parameters and states, by name
//                                   optimizer.safetensors   "<parameter>:<state>"
//                                   manifest.json           written last: it is the commit
//                     best                                  name of the best one
//
// Large models have several files of each kind (layout.hpp). Every byte is checked against the SHA-256 in the manifest
// before it is loaded, so a torn or damaged checkpoint is never used. writer.hpp writes checkpoints, reader.hpp reads
// them on all ranks together.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "run/checkpoint/files.hpp"
#include "run/checkpoint/manifest.hpp"
#include "run/checkpoint/safetensors.hpp"
#include "step/exec/parameters.hpp"

namespace lockstep::checkpoint {

struct Checkpoint {
  std::string path;
  Manifest manifest;
};

/// "step-00000120"
[[nodiscard]] std::string checkpoint_name(std::int64_t step);
/// The step of such a path; nullopt for any other.
[[nodiscard]] std::optional<std::int64_t> step_of(const std::string& path);

// Missing or damaged files are reported as such; any other file-system error is thrown (files.hpp), so that no
// checkpoint is given up because a disk fails for a moment.

/// Step directories under `checkpoints` that have a manifest, newest first.
[[nodiscard]] std::vector<std::string> list_checkpoints(const std::string& checkpoints);

/// Puts the checkpoint at `from`, which is of `step`, into the folder of checkpoints `to` as well, by links where the
/// file system has them: its files are never changed, only removed. Does nothing if it is there. Returns its new path.
/// `advance` is called as files are linked or bytes copied. Throws Error(data) if there is none.
std::string share_checkpoint(const std::string& from, const std::string& to, std::int64_t step,
                             const std::function<void()>& advance = {}, FileSystem& files = real_files());

/// The name of the step directory that the file `best` contains; "" if it contains none.
[[nodiscard]] std::string best_checkpoint(const std::string& checkpoints);
/// What is wrong with a file `best` that is there and contains no such name; "" if nothing is.
[[nodiscard]] std::string damage_of_best(const std::string& checkpoints);

/// Reads only the manifest. Throws Error(data).
[[nodiscard]] Checkpoint open_checkpoint(const std::string& directory);

/// The job in the manifest at this path, in canonical form; if there is none, nullopt with the reason in `why`.
[[nodiscard]] std::optional<std::string> job_of_manifest(const std::string& manifest, std::string& why);

/// Reads and verifies one of its files. Throws Error(data) that names the file, and the tensor that is damaged.
/// `read_some` is called repeatedly meanwhile.
[[nodiscard]] SafetensorsFile read_part(const Checkpoint& checkpoint, const std::string& file,
                                        const std::function<void()>& read_some = {});

/// One message for each problem with its files; empty if they are intact. Throws if a file cannot be read. `read_some`
/// is called repeatedly meanwhile.
[[nodiscard]] std::vector<std::string> find_damage(const Checkpoint& checkpoint,
                                                   const std::function<void()>& read_some = {});

/// Opens and verifies the whole checkpoint; if it is damaged, nullopt with the reasons in `why`. `read_some` is called
/// repeatedly meanwhile.
[[nodiscard]] std::optional<Checkpoint> read_checkpoint(const std::string& directory, std::string& why,
                                                        const std::function<void()>& read_some = {});

/// Where a tensor of a checkpoint is copied to.
struct Target {
  Shape shape;
  std::span<float> values;
  std::optional<std::vector<exec::Extent>> own = {};  ///< the elements that are needed; none: all
};
using Targets = std::map<std::string, Target>;
void add_targets(const exec::TensorBlock& block, const std::string& suffix, Targets& targets);

/// Fills the targets, by name, from all pieces, whichever files hold them; reads only files that are needed. Throws
/// Error(data) if a tensor is missing, damaged or of another shape.
void load(const Checkpoint& checkpoint, const Targets& targets);

/// Elements to copy from a tensor of a file.
struct Copy {
  std::string name;  ///< the tensor's name in the file
  Shape shape;
  std::int64_t first = 0;  ///< index of the first element; the others follow
  std::span<float> to;
};
/// What to copy from each file. Throws like load(), except for damage.
[[nodiscard]] std::map<std::string, std::vector<Copy>> plan_copies(const Checkpoint& checkpoint,
                                                                   const Targets& targets);

}  // namespace lockstep::checkpoint
