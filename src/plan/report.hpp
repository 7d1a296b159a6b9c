// Predictions as people read them: tables of memory and time, a row for each rank; ranks alike share one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/memory.hpp"
#include "plan/time.hpp"

namespace lockstep::plan {

/// Columns, all but the first to the right; two blanks before each row. Lines end with newlines.
[[nodiscard]] std::string table_text(const std::vector<std::vector<std::string>>& rows);

/// "12.3 MiB", "1.25 GiB"
[[nodiscard]] std::string size_text(std::int64_t bytes);

/// MiB by kind, without the kinds that nobody has. Ends with a newline.
[[nodiscard]] std::string memory_table(const std::vector<RankMemory>& ranks);

/// Milliseconds by phase, and bytes sent. Ends with a newline.
[[nodiscard]] std::string time_table(const PlacedModel& placed, const StepTime& time);

}  // namespace lockstep::plan
