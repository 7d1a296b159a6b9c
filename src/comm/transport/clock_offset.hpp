// How far a rank's steady clock is from rank 0's, for timelines.
#pragma once

#include <chrono>
#include <functional>

#include "core/trace.hpp"
#include "lockstep/communicator.hpp"

namespace lockstep::comm {

struct ClockOffset {
  double at = 0;       ///< this rank's clock when it was measured
  double seconds = 0;  ///< added to this rank's clock it is rank 0's
  double error = 0;    ///< no further off than this: half the shortest way there and back
};

/// Asks rank 0 for the time and takes the quickest answer of some; 0 on rank 0's host, whose ranks read one clock.
/// Every rank calls it. `clock`: seconds.
[[nodiscard]] ClockOffset clock_offset(Communicator& communicator, std::chrono::milliseconds timeout,
                                       const std::function<double()>& clock = steady_seconds);

}  // namespace lockstep::comm
