// CPU time, memory and threads of this process, from /proc.
#pragma once

#include <cstdint>
#include <string>

#include "telemetry/rank_metrics.hpp"

namespace lockstep::telemetry {

struct ProcessSample {
  double user_seconds = 0, system_seconds = 0;
  double resident_bytes = 0;
  double threads = 0;
};

/// From the text of /proc/self/stat.
[[nodiscard]] ProcessSample parse_process_stat(const std::string& text, double ticks_a_second, double page_bytes);

/// The most that this process has had in memory so far, in bytes, pages that it shares with other ranks among them; 0:
/// /proc cannot be read.
[[nodiscard]] std::int64_t peak_resident_bytes();

/// What it has now.
[[nodiscard]] std::int64_t resident_bytes();

/// Fills lockstep_process_*; leaves them where /proc cannot be read.
void sample_process(RankMetrics& metrics);

}  // namespace lockstep::telemetry
