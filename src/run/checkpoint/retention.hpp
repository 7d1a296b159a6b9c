// Which checkpoints are kept: the newest `keep`, those at multiples of `keep_every` steps, and the best. Rank 0 only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "run/checkpoint/files.hpp"

namespace lockstep::checkpoint {

struct Retention {
  std::int64_t keep = 3;        ///< at least 1
  std::int64_t keep_every = 0;  ///< steps; 0: none
};

/// The others, of names or paths with the newest first.
[[nodiscard]] std::vector<std::string> dropped(const std::vector<std::string>& newest_first, const Retention& retention,
                                               const std::string& best);

/// Removes the others but `pinned`, which is being copied; also what set_aside() has left, once there are `keep` newer
/// ones.
void prune_checkpoints(FileSystem& files, const std::string& checkpoints, const Retention& retention,
                       const std::string& best, const std::string& pinned = "");

/// From here on, `best` names this step directory.
void write_best(FileSystem& files, const std::string& checkpoints, const std::string& name);

/// Before a run resumes from `step`: removes what was only partially written, and renames the checkpoints of later
/// steps (damaged, or left behind on purpose by --resume PATH) to superseded-NNNNNNNN, so that none of them is loaded
/// and none of their files is mixed with new ones. prune_checkpoints() removes them.
void set_aside(FileSystem& files, const std::string& checkpoints, std::int64_t step);

}  // namespace lockstep::checkpoint
