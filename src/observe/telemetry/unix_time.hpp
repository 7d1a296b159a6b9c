// The system clock, for times that are compared across machines. For durations see core/spans.hpp.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <ctime>
#include <string>

namespace lockstep::telemetry {

/// Seconds since 1970.
[[nodiscard]] inline double unix_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// "2026-01-31T09:05:00Z", of seconds since 1970.
[[nodiscard]] inline std::string utc_text(double time) {
  const std::time_t seconds = time;
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday,
                     parts.tm_hour, parts.tm_min, parts.tm_sec);
}

}  // namespace lockstep::telemetry
