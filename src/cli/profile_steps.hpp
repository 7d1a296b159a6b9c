// What --profile says.
#pragma once

#include <string>

#include "lockstep/run_watcher.hpp"

namespace lockstep::cli {

inline constexpr const char* kProfileHelp = "trace these steps of every rank, as in 11-60, for `lockstep trace merge`";

/// "11-60", or one step, counted from 1; empty: none. Throws Error(usage).
[[nodiscard]] ProfileSteps profile_steps(const std::string& text);

}  // namespace lockstep::cli
