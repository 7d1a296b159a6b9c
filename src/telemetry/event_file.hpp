// events.jsonl in the run directory: every event, one JSON object a line, with its Unix time. A resumed run goes on in
// the same file.
#pragma once

#include <string>

#include "telemetry/sink.hpp"

namespace lockstep::telemetry {

/// A line of event_line() with its Unix time as the last field, and its end.
[[nodiscard]] std::string timed_line(const std::string& line);

/// A disk that is full ends nothing: the file has a gap then, but no half a line that the next one would be joined to.
/// `file`: a descriptor.
void append_line(int file, const std::string& line);

/// Opens the file, and makes its folder, when the run starts (the `start` event): not before the run directory is
/// known to be this run's. Events that came before are written then.
[[nodiscard]] std::unique_ptr<Sink> make_event_file(std::string path);

}  // namespace lockstep::telemetry
