// One event as lines for people; pure functions of the record.
#pragma once

#include <string>

#include "telemetry/sink.hpp"

namespace lockstep::telemetry {

/// Escape sequences, or nothing where colours are off.
struct Palette {
  const char* strong = "";
  const char* quiet = "";
  const char* good = "";
  const char* reset = "";
};

[[nodiscard]] Palette make_palette(bool color);

/// Any event but `step`; lines without the last newline. Fields that are not known come last as "name value".
[[nodiscard]] std::string event_text(const std::string& name, const Record& record, const Palette& palette);

}  // namespace lockstep::telemetry
