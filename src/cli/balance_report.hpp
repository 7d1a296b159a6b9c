// What a run's events say of its balance, for people.
#pragma once

#include <string>

namespace lockstep::cli {

/// Of the newest attempt in `run_directory`/events.jsonl: who computed and who waited, and each move of shares with its
/// reason, its evidence, what was predicted and what was measured. Throws Error(usage) where there is no such file, or
/// no run of several ranks in it.
[[nodiscard]] std::string balance_report(const std::string& run_directory);

}  // namespace lockstep::cli
