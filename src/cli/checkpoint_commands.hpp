// What the subcommands of `lockstep checkpoint` share: the places that they take.
#pragma once

#include <string>

#include "checkpoint/checkpoint.hpp"
#include "cli/commands.hpp"

namespace lockstep::cli {

void add_checkpoint_diff(CLI::App& checkpoint, Action& run);

inline constexpr const char* kCheckpointPlaceHelp =
    "a checkpoint's directory, a run directory (its newest), or a run directory's checkpoints/best";

/// The directory that holds the steps: of a run directory, or the one given. Throws Error(data).
[[nodiscard]] std::string steps_directory(const std::string& place);

/// The checkpoint at `place`, verified: a damaged one is an Error(data), but of a run directory the newest sound one
/// is taken.
[[nodiscard]] checkpoint::Checkpoint checkpoint_at(const std::string& place);

}  // namespace lockstep::cli
