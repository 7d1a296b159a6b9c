// One event as lines for people; pure functions of the record.
//
// What a line of a step begins with is a column: "step  31/100  validation  loss 1.4923  accuracy 0.5360".
#pragma once

#include <cstdint>
#include <string>

#include "telemetry/sink.hpp"

namespace lockstep::telemetry {

/// Escape sequences, or nothing where colours are off.
struct Palette {
  const char* strong = "";
  const char* quiet = "";
  const char* good = "";
  const char* warn = "";
  const char* reset = "";
};

[[nodiscard]] Palette make_palette(bool color);

/// "step  31/100  validation  ", both parts as wide as they ever are; `steps` 0: not known.
[[nodiscard]] std::string step_columns(double step, double steps, const std::string& what, const char* style = "",
                                       const char* reset = "");

/// Any event but `step`; lines without the last newline. `steps`: of the whole run, 0: not known. Fields that are not
/// known come last as "name value".
[[nodiscard]] std::string event_text(const std::string& name, const Record& record, const Palette& palette,
                                     double steps = 0);

/// The `end` event.
[[nodiscard]] std::string end_text(const Record& record, const Palette& palette, double steps);

}  // namespace lockstep::telemetry
