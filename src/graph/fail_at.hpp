// Errors in a job's model settings, with their place in the job.
#pragma once

#include <fmt/format.h>

#include <string>

#include "lockstep/error.hpp"
#include "lockstep/job.hpp"

namespace lockstep {

/// The place, a line of the file or the command line, is omitted if it is not known.
[[noreturn]] inline void fail_at(const Place& place, const std::string& message) {
  const std::string where = place.text();
  throw Error(ExitCode::configuration, where.empty() ? message : fmt::format("{}: {}", where, message));
}

}  // namespace lockstep
