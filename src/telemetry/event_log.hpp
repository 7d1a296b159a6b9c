// The log for machines (`--log json`): one JSON object a line, "event" first, then the record's fields in order.
// JSON has no word for numbers that are not finite: they are the strings "nan", "inf" and "-inf".
#pragma once

#include <cstdio>
#include <optional>
#include <string>
#include <utility>

#include "telemetry/sink.hpp"

namespace lockstep::telemetry {

/// One line, without its end.
[[nodiscard]] std::string event_line(const std::string& name, const Record& record);

/// The event that a line holds; nullopt when it is not one.
[[nodiscard]] std::optional<std::pair<std::string, Record>> parse_event(const std::string& line);

/// Each line is flushed, so that a reader at the other end of a pipe sees it at once. `file` stays the caller's.
/// Throws Error(infrastructure) when the line cannot be written.
[[nodiscard]] std::unique_ptr<Sink> make_json_log(std::FILE* file);

}  // namespace lockstep::telemetry
