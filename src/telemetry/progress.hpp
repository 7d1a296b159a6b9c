// The log for people: what a run is, its progress, how it ended.
//
// On a terminal, the latest step is one line that is overwritten; in a file it is a plain line at every tenth of the
// run and at least every 10 s (every 60 s once the run is long). All other events are permanent lines.
#pragma once

#include <cstdio>
#include <functional>
#include <memory>

#include "lockstep/events.hpp"

namespace lockstep::telemetry {

struct ProgressOptions {
  bool terminal = false;
  bool color = false;
  int columns = 0;                ///< a terminal's step line is cut to this; 0: to the terminal's width
  std::function<double()> clock;  ///< seconds; empty: the steady clock. For tests
};

/// Colours only on a terminal, and not if NO_COLOR is set to anything or TERM is "dumb".
[[nodiscard]] ProgressOptions progress_options_for(std::FILE* file);

/// The caller keeps ownership of `file`. Write errors are ignored, since there is no other place to report them.
[[nodiscard]] std::unique_ptr<events::Sink> make_progress(std::FILE* file, ProgressOptions options);
[[nodiscard]] std::unique_ptr<events::Sink> make_progress(std::FILE* file, bool terminal, bool color);

}  // namespace lockstep::telemetry
