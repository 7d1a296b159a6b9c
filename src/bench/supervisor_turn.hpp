// What a turn of the supervisor's loop costs: its real end of the control sockets, and a process that speaks for all
// ranks at the other end.
#pragma once

namespace lockstep::bench {

struct SupervisorTurn {
  double seconds = 0;       ///< of the processor, in the median turn
  int beats = 0;            ///< heartbeats that come in a turn
  double beat_seconds = 0;  ///< between two heartbeats of a rank
};

/// Of turns as `lockstep launch` takes them while nothing goes wrong: 20 a second. Starts and ends a process, so no
/// other threads may run. Throws Error(usage) where fewer files may be open than there are ranks.
[[nodiscard]] SupervisorTurn measure_supervisor_turn(int ranks);

}  // namespace lockstep::bench
