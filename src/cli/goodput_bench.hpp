// lockstep bench goodput: how much of the time of a long run on thousands of devices is useful. Simulated.
#pragma once

#include "cli/commands.hpp"

namespace lockstep::cli {

/// Adds the subcommand to `bench`.
void add_goodput(CLI::App& bench, Action& run);

}  // namespace lockstep::cli
