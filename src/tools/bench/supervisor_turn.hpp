// What one turn of the supervisor's loop costs: the supervisor's ends of the control sockets are real, and one process
// speaks for all ranks at the other ends.
#pragma once

namespace lockstep::bench {

struct SupervisorTurn {
  double seconds = 0;       ///< CPU time of the median turn
  int beats = 0;            ///< heartbeats that arrive in one turn
  double beat_seconds = 0;  ///< between two heartbeats of one rank
};

/// Measures turns as `lockstep launch` runs them while nothing goes wrong: 20 per second. Starts and ends a process, so
/// no other threads may run. Throws Error(usage) if the limit on open files is lower than the number of ranks.
[[nodiscard]] SupervisorTurn measure_supervisor_turn(int ranks);

}  // namespace lockstep::bench
