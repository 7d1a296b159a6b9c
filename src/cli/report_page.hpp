// The page of `lockstep report`: HTML with its style and charts inside, nothing to fetch and nothing to run.
#pragma once

#include <string>

#include "cli/run_events.hpp"

namespace lockstep::cli {

[[nodiscard]] std::string report_page(const std::string& run_directory, const RunEvents& run);

}  // namespace lockstep::cli
