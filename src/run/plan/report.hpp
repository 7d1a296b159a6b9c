// Predictions as text: tables of memory and time, one row per rank; equal ranks share one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "run/plan/memory.hpp"
#include "run/plan/time.hpp"

namespace lockstep::plan {

/// Columns, all but the first right-aligned; two spaces before each row. Lines end with newlines.
[[nodiscard]] std::string table_text(const std::vector<std::vector<std::string>>& rows);

/// "12.3 MiB", "1.25 GiB"
[[nodiscard]] std::string size_text(std::int64_t bytes);

/// MiB by kind, without kinds that are zero on all ranks. Ends with a newline.
[[nodiscard]] std::string memory_table(const std::vector<RankMemory>& ranks);

/// Milliseconds by phase, and bytes sent. Ends with a newline.
[[nodiscard]] std::string time_table(const PlacedModel& placed, const StepTime& time);

}  // namespace lockstep::plan
