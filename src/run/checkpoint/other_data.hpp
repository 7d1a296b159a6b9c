// A resume that is refused because the data have changed: why it ends, for people, and for a sweep that started it.
#pragma once

#include <fmt/format.h>

#include <string>

#include "lockstep/error.hpp"

namespace lockstep::checkpoint {

inline constexpr const char* kOtherData = ": the data set is not the one that this run began with; ";

[[nodiscard]] inline Error other_data(const std::string& path) {
  return {ExitCode::data, fmt::format("{}{}restore it, or choose a new run_directory", path, kOtherData)};
}

/// Whether a process that ended with `code` and `message` was refused by other_data(). There is no exit code for it
/// alone: to everyone else it is data that are not what the job says.
[[nodiscard]] inline bool refused_other_data(int code, const std::string& message) {
  return code == static_cast<int>(ExitCode::data) && message.find(kOtherData) != std::string::npos;
}

}  // namespace lockstep::checkpoint
