// Errors in what a job says of its model, with the place where it says so.
#pragma once

#include <fmt/format.h>

#include <string>

#include "lockstep/error.hpp"
#include "lockstep/job.hpp"

namespace lockstep {

/// The place, a line of the file or the command line, is left out where nobody wrote it down.
[[noreturn]] inline void fail_at(const Place& place, const std::string& message) {
  const std::string where = place.text();
  throw Error(ExitCode::configuration, where.empty() ? message : fmt::format("{}: {}", where, message));
}

}  // namespace lockstep
