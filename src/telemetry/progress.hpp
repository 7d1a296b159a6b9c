// The log for people: what a run is, how far it is, how it ended.
//
// On a terminal the newest step is one line that is written over; in a file it is a plain line at every tenth of
// the run and at least every 10 s (every 60 s once the run is long). All other events are lines that stay.
#pragma once

#include <cstdio>
#include <functional>
#include <memory>

#include "lockstep/events.hpp"

namespace lockstep::telemetry {

struct ProgressOptions {
  bool terminal = false;
  bool color = false;
  int columns = 0;                ///< a terminal's step line is cut to this; 0: as wide as the terminal is
  std::function<double()> clock;  ///< seconds; empty: the steady clock. For tests
};

/// Colours only on a terminal, and not where NO_COLOR is set to anything or TERM is "dumb".
[[nodiscard]] ProgressOptions progress_options_for(std::FILE* file);

/// `file` stays the caller's. Write errors are ignored: nobody would read about them.
[[nodiscard]] std::unique_ptr<events::Sink> make_progress(std::FILE* file, ProgressOptions options);
[[nodiscard]] std::unique_ptr<events::Sink> make_progress(std::FILE* file, bool terminal, bool color);

}  // namespace lockstep::telemetry
