// The events of a run from events.jsonl, over all its starts.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "observe/telemetry/event_json.hpp"

namespace lockstep::cli {

struct RunEvents {
  events::Start start;                       ///< the newest
  std::optional<events::End> end;            ///< the newest; none if the run still goes on or has died
  std::vector<events::Step> steps;           ///< each once: of a repeated step, the last report; of many, see below
  std::vector<std::int64_t> skipped;         ///< the steps whose updates were skipped; each once, and all
  std::vector<events::Evaluation> evals;     ///< each once
  std::optional<events::Goodput> goodput;    ///< the newest
  std::vector<telemetry::ReadEvent> others;  ///< starts, balance, checkpoint, restart, warning, ...: in file order
  double rank_seconds = 0;                   ///< sum over the starts: ranks times the time until the start's last event
  double joules = 0;                         ///< used by the ranks' GPUs, until the last step of each start
  std::set<int> metered;                     ///< ranks with known energy: all, if the run has at most Step::kMostRanks
};

/// Of more than 16,384 steps it has those that a power of two divides, and the last: what a page draws, in memory that
/// does not grow with the file. Skips lines that are damaged or not events. Throws Error(usage) if the directory holds
/// no run.
[[nodiscard]] RunEvents read_run_events(const std::string& run_directory);

}  // namespace lockstep::cli
