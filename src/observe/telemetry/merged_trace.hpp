// All ranks' timelines in one file, with the critical path as a separate process.
#pragma once

#include <string>
#include <vector>

#include "observe/telemetry/diagnosis.hpp"
#include "observe/telemetry/rank_trace.hpp"

namespace lockstep::telemetry {

/// `traces` must be aligned; the first span begins at 0. The file also contains `verdict`. Throws Error(cannot_create)
/// if the file cannot be written.
void write_merged_trace(const std::string& path, const std::vector<RankTrace>& traces,
                        const std::vector<PathStep>& critical, const std::string& verdict);

}  // namespace lockstep::telemetry
