// Sinks for machines: events as lines of JSON.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/attributes.hpp"
#include "lockstep/events.hpp"
#include "observe/telemetry/console.hpp"

namespace lockstep::telemetry {

/// `--log json`: prints a line for each event.
[[nodiscard]] std::unique_ptr<events::Sink> make_json_log(Print print);
/// For it, on stdout.
[[nodiscard]] std::unique_ptr<Console> make_json_console();
/// At the end: waits for the reader like finish(). Throws Error(infrastructure) if it has not got every line.
void require_written(Console& json);

/// events.jsonl in the run directory: events with their times, of the steps those that ThinnedLines keeps. A resumed
/// run appends to the same file. The file and its directory are created at the `start` event, when the run directory is
/// known to belong to this run; earlier events are written then.
[[nodiscard]] std::unique_ptr<events::Sink> make_event_file(std::string path, std::optional<Span> every = {});

/// Opens such a file to append to; -1: errno says why not. If its last line was not written to its end, it is ended:
/// what follows would be joined to it. Readers leave out such a line.
[[nodiscard]] int open_event_file(const std::string& path);

/// Appends to a file descriptor. A full disk does not end the run: the file then has a gap, but no partial line that
/// the next one would be joined to.
void append_line(int file, const std::string& line);

/// Passes each event to all of `sinks`, in order.
[[nodiscard]] std::unique_ptr<events::Sink> make_tee(std::vector<std::unique_ptr<events::Sink>> sinks);

}  // namespace lockstep::telemetry
