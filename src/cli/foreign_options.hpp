// What other trainers and launchers call options, for hints about unknown ones.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace lockstep::cli {

/// "; give the job file by itself: lockstep train JOB" for --config, "; did you mean '--ranks'?" for -n. `name` has its
/// dashes. Empty: the command has nothing of the kind.
[[nodiscard]] std::string ours_of(const CLI::App& command, const std::string& full_name, const std::string& name);

}  // namespace lockstep::cli
