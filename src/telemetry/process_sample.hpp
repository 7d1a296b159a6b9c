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

/// Fills lockstep_process_*; leaves them where /proc cannot be read.
void sample_process(RankMetrics& metrics);

}  // namespace lockstep::telemetry
