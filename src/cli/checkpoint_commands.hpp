// Shared by the subcommands of `lockstep checkpoint`: how they resolve the checkpoints that they are given.
#pragma once

#include <string>

#include "checkpoint/checkpoint.hpp"
#include "cli/commands.hpp"

namespace lockstep::cli {

void add_checkpoint_diff(CLI::App& checkpoint, Action& run);
void add_checkpoint_export(CLI::App& checkpoint, Action& run);
void add_checkpoint_job(CLI::App& checkpoint, Action& run);

inline constexpr const char* kCheckpointPlaceHelp =
    "a checkpoint's directory, a run directory (its newest), or a run directory's checkpoints/best";

/// The directory that holds the steps: that of a run directory, or `place` itself. Throws Error(data).
[[nodiscard]] std::string steps_directory(const std::string& place);

/// The checkpoint at `place`, verified: throws Error(data) if it is damaged. For a run directory, its newest intact
/// checkpoint.
[[nodiscard]] checkpoint::Checkpoint checkpoint_at(const std::string& place);

}  // namespace lockstep::cli
