// The log for people: what a run is, its progress, how it ended.
//
// On a terminal, the latest step is one line that is overwritten; in a file it is a plain line at every tenth of the
// run and at least every 10 s (every 60 s once the run is long). All other events are permanent lines.
#pragma once

#include <functional>
#include <memory>

#include "lockstep/events.hpp"
#include "observe/telemetry/console.hpp"

namespace lockstep::telemetry {

struct ProgressOptions {
  bool terminal = false;
  bool color = false;
  int columns = 0;                ///< a terminal's step line is cut to this; 0: to the width of stderr's terminal
  std::function<double()> clock;  ///< seconds; empty: the steady clock. For tests
};

/// Colours only on a terminal, and not if NO_COLOR is set to anything or TERM is "dumb".
[[nodiscard]] ProgressOptions progress_options_for(int descriptor);
/// On stderr. What cannot be written is lost, since there is no other place to report it.
[[nodiscard]] std::unique_ptr<Console> make_progress_console();

[[nodiscard]] std::unique_ptr<events::Sink> make_progress(Print print, ProgressOptions options);

}  // namespace lockstep::telemetry
