// CPU time, memory and threads of this process, from /proc.
#pragma once

#include <cstdint>
#include <string>

#include "observe/telemetry/rank_metrics.hpp"

namespace lockstep::telemetry {

struct ProcessSample {
  double user_seconds = 0, system_seconds = 0;
  double resident_bytes = 0;
  double threads = 0;
};

/// From the text of /proc/self/stat.
[[nodiscard]] ProcessSample parse_process_stat(const std::string& text, double ticks_a_second, double page_bytes);

/// The peak memory of this process so far, in bytes, including pages that it shares with other ranks; 0: /proc cannot
/// be read.
[[nodiscard]] std::int64_t peak_resident_bytes();

/// Its current memory.
[[nodiscard]] std::int64_t resident_bytes();

/// Sets lockstep_process_*, unless /proc cannot be read.
void sample_process(RankMetrics& metrics);

}  // namespace lockstep::telemetry
