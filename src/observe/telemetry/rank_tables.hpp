// Tables by rank in events; those of `step` events have a bounded number of rows. Of what they are made, a negative
// value is none.
#pragma once

#include <span>

#include "lockstep/events.hpp"

namespace lockstep::telemetry {

[[nodiscard]] events::ByRank all_values(std::span<const double> by_rank);

/// The largest Step::kMostRanks, of equal ones those of lower ranks.
[[nodiscard]] events::ByRank largest_values(std::span<const double> by_rank);

/// "min", "median" (the upper one of two in the middle), "p95" (no less than 95 % of them) and "max"; empty if there
/// are none.
[[nodiscard]] events::ByName spread_of_values(std::span<const double> by_rank);

[[nodiscard]] double sum_of_values(std::span<const double> by_rank);

}  // namespace lockstep::telemetry
