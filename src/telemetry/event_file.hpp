// events.jsonl in the run directory: every event, one JSON object a line, with its Unix time. A resumed run goes on in
// the same file. A disk that is full does not end the run: the file has a gap then.
#pragma once

#include <string>

#include "telemetry/sink.hpp"

namespace lockstep::telemetry {

/// Opens the file, and makes its folder, when the run starts (the `start` event): not before the run directory is
/// known to be this run's. Events that came before are written then.
[[nodiscard]] std::unique_ptr<Sink> make_event_file(std::string path);

}  // namespace lockstep::telemetry
