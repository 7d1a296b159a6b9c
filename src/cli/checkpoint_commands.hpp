// The subcommands of `lockstep checkpoint`.
#pragma once

#include "cli/commands.hpp"

namespace lockstep::cli {

void add_checkpoint_diff(CLI::App& checkpoint, Action& run);
void add_checkpoint_export(CLI::App& checkpoint, Action& run);
void add_checkpoint_job(CLI::App& checkpoint, Action& run);

inline constexpr const char* kCheckpointPlaceHelp =
    "a checkpoint's directory, a run directory (its best with early_stop.restore_best, else its newest), or a run "
    "directory's checkpoints/best";

}  // namespace lockstep::cli
