// The events of a run, from events.jsonl, over all its starts.
#pragma once

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

namespace lockstep::cli {

using EventJson = nlohmann::ordered_json;

// NOLINTNEXTLINE(bugprone-exception-escape): to move an ordered_json throws nothing
struct RunEvents {
  EventJson start;                ///< the newest
  EventJson end;                  ///< the newest; null while the run goes on, or where it died
  std::vector<EventJson> steps;   ///< once each: of a step that was done again, the last
  std::vector<EventJson> evals;   ///< likewise
  std::vector<EventJson> others;  ///< starts, balance, checkpoint, restart, warning, ...: as they came
  double rank_seconds = 0;        ///< ranks by the time from a start to the last event that it told
  double joules = 0;              ///< of the ranks' GPUs, until the last step of each start
  std::set<std::string> metered;  ///< the ranks that it is of
};

/// Throws Error(usage) where the directory holds no run.
[[nodiscard]] RunEvents read_run_events(const std::string& run_directory);

}  // namespace lockstep::cli
