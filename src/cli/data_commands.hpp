// The subcommands of `lockstep data`.
#pragma once

#include "cli/commands.hpp"

namespace lockstep::cli {

void add_data_info(CLI::App& data, Action& run);
void add_data_pack(CLI::App& data, Action& run);
void add_data_fetch(CLI::App& data, Action& run);

}  // namespace lockstep::cli
