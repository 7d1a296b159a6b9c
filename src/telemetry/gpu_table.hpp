// The GPUs of a run as a table for people.
#pragma once

#include <string>
#include <vector>

#include "telemetry/event_text.hpp"
#include "telemetry/sink.hpp"

namespace lockstep::telemetry {

/// Of `gpu` events, a row each; lines without the last newline. What no GPU says has no column; fields that are not
/// known come last as "name value".
[[nodiscard]] std::string gpu_table(const std::vector<Record>& gpus, const Palette& palette);

}  // namespace lockstep::telemetry
