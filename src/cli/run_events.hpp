// The events of a run, from events.jsonl, over all its starts.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "telemetry/event_json.hpp"

namespace lockstep::cli {

struct RunEvents {
  events::Start start;                       ///< the newest
  std::optional<events::End> end;            ///< the newest; none while the run goes on, or where it died
  std::vector<events::Step> steps;           ///< once each: of a step that was done again, the last
  std::vector<events::Evaluation> evals;     ///< likewise
  std::vector<telemetry::ReadEvent> others;  ///< starts, balance, checkpoint, restart, warning, ...: as they came
  double rank_seconds = 0;                   ///< ranks by the time from a start to its last event
  double joules = 0;                         ///< of the ranks' GPUs, until the last step of each start
  std::set<int> metered;                     ///< the ranks that it is of
};

/// Lines that are not events, or damaged, are skipped. Throws Error(usage) where the directory holds no run.
[[nodiscard]] RunEvents read_run_events(const std::string& run_directory);

}  // namespace lockstep::cli
