// The report on several runs, side by side: what they came to, what their jobs say differently, and their curves.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/run_events.hpp"

namespace lockstep::cli {

/// The best evaluation of a run by one of its numbers.
struct BestEvaluation {
  double value = 0;
  std::int64_t step = 0;
};
/// `metric`: "loss" or a metric's name. The first of equal ones; nullopt if no evaluation has the number.
[[nodiscard]] std::optional<BestEvaluation> best_evaluation(const RunEvents& run, const std::string& metric);
/// Whether a larger number is the better one. Runs say it of their metrics, which may be a plugin's.
[[nodiscard]] bool higher_is_better(const events::Start& start, const std::string& metric);

/// The job of a run as JSON text, or as YAML where a launch was given it so: from the run directory, else from its
/// newest checkpoint; nullopt if neither has it.
[[nodiscard]] std::optional<std::string> stored_job(const std::string& run_directory);

/// The page. Throws Error(usage) if one of the directories holds no run.
[[nodiscard]] std::string runs_report_page(const std::vector<std::string>& directories);

}  // namespace lockstep::cli
