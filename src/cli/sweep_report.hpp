// The report on a sweep: which trials there were, what they came to, and which parameters mattered.
#pragma once

#include <string>

namespace lockstep::cli {

/// Whether a directory is a sweep's.
[[nodiscard]] bool is_sweep(const std::string& directory);

/// The page, from the sweep's trials.json and the trials' events. Throws Error(data) if trials.json is unreadable.
[[nodiscard]] std::string sweep_report_page(const std::string& directory);

}  // namespace lockstep::cli
