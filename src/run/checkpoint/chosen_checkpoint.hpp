// Which of its checkpoints a run is used by. One rule for every command: the best if the run's job has
// `early_stop.restore_best`, else the newest; unless another is named.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "run/checkpoint/checkpoint.hpp"

namespace lockstep::checkpoint {

/// What the job in a manifest says of the model to use.
struct ModelChoice {
  bool best = false;     ///< early_stop.restore_best
  bool average = false;  ///< optimizer.average.evaluate, and the checkpoint has an average
};
[[nodiscard]] ModelChoice model_choice(const Manifest& manifest);

struct ChosenCheckpoint {
  Checkpoint checkpoint;  ///< verified
  std::string choice;     ///< "newest" or "best"; empty: it was given by its path
};

/// `which`: "newest", "best" (by `checkpoint.best`) or "auto". `checkpoints`: the folder of a run's. `restores_best`:
/// what the job says now; none: what it said in training. Damaged newest ones are passed over. `read_some` is called
/// repeatedly meanwhile. Throws Error(data) if there is none, or if the best is damaged.
[[nodiscard]] ChosenCheckpoint choose_checkpoint(const std::string& checkpoints, const std::string& which = "auto",
                                                 std::optional<bool> restores_best = {},
                                                 const std::function<void()>& read_some = {});

/// The step of the best checkpoint, if "auto" would choose it.
[[nodiscard]] std::optional<std::int64_t> restored_step(const std::string& checkpoints);

/// The folder of a run's checkpoints: in a run directory, or `place` itself. Throws Error(data).
[[nodiscard]] std::string checkpoints_at(const std::string& place);

/// `place`: a checkpoint, a run directory, its folder of checkpoints, or checkpoints/best. Throws as
/// choose_checkpoint().
[[nodiscard]] ChosenCheckpoint checkpoint_at(const std::string& place);

}  // namespace lockstep::checkpoint
