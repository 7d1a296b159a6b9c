// Names that earlier versions wrote, for code that reads events or timelines; no other code knows them.
#pragma once

#include <string>

namespace lockstep::telemetry {

/// The current name of a phase, or of an event's field about one: "exchange" has become "reduce".
[[nodiscard]] inline std::string present_name(const std::string& name) {
  if (name == "exchange") return "reduce";
  if (name == "exchange_seconds") return "reduce_seconds";
  return name == "exchange_seconds_by_rank" ? "reduce_seconds_by_rank" : name;
}

}  // namespace lockstep::telemetry
