#include "cli/profile_steps.hpp"

#include <fmt/format.h>

#include <charconv>

#include "lockstep/error.hpp"

namespace lockstep::cli {

ProfileSteps profile_steps(const std::string& text) {
  if (text.empty()) return {};
  ProfileSteps steps;
  const char* const end = text.data() + text.size();
  auto read = std::from_chars(text.data(), end, steps.first);
  steps.last = steps.first;
  if (read.ec == std::errc{} && read.ptr != end && *read.ptr == '-') {
    read = std::from_chars(read.ptr + 1, end, steps.last);
  }
  const bool whole = read.ec == std::errc{} && read.ptr == end;
  if (whole && steps.first >= 1 && steps.last >= steps.first) return steps;
  throw Error(ExitCode::usage, fmt::format("--profile: expected steps, as in 11-60, counted from 1, found '{}'", text));
}

}  // namespace lockstep::cli
