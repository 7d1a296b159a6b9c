// Events as JSON and back: one object per line, "event" first, then the fields in the order of their schema. JSON has
// no non-finite numbers: they are the strings "nan", "inf" and "-inf".
#pragma once

#include <optional>
#include <string>

#include "lockstep/events.hpp"

namespace lockstep::telemetry {

/// One line, without its end.
[[nodiscard]] std::string event_line(const events::Event& event);

/// The line with the time as its last field ("time", in Unix seconds), and its end.
[[nodiscard]] std::string with_time(const std::string& line);

struct ReadEvent {
  std::optional<events::Event> event;  ///< missing numbers are NaN, other missing fields empty
  double time = 0;                     ///< 0: the line has no time
  std::string name;                    ///< empty: the line is not an event, or one that this version does not know
  std::string damage;                  ///< why a line with a name is not a valid event: "expected an integer as 'step'"
};
/// Lines of other programs and incomplete ones are returned as no event. Unknown fields are ignored.
[[nodiscard]] ReadEvent read_event(const std::string& line);

/// Every event and its fields, as a table in Markdown.
[[nodiscard]] std::string events_markdown();

}  // namespace lockstep::telemetry
