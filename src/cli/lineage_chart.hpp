// The picture of a population: what each trial came to after each generation, and from which one it went on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::cli {

struct LineageTrial {
  std::int64_t number = 0;
  std::optional<std::pair<std::int64_t, std::int64_t>> from;  ///< trial, step
  std::vector<std::pair<std::int64_t, double>> reports;       ///< steps, value
  bool of_best = false;                                       ///< the best trial, or one that it comes from
};

/// A figure: a line for each trial from its origin through its reports, those of the best one's line in colour. Empty
/// if there is no report.
[[nodiscard]] std::string lineage_chart(const std::string& metric, const std::vector<LineageTrial>& trials);

}  // namespace lockstep::cli
