// The offset of a rank's steady clock from rank 0's, for timelines.
#pragma once

#include <chrono>
#include <functional>

#include "core/trace.hpp"
#include "lockstep/communicator.hpp"

namespace lockstep::comm {

struct ClockOffset {
  double at = 0;       ///< this rank's clock at the measurement
  double seconds = 0;  ///< add it to this rank's clock to get rank 0's
  double error = 0;    ///< upper bound of the error: half the shortest round trip
};

/// Asks rank 0 for the time several times and uses the fastest answer; 0 on rank 0's host, whose ranks share a clock.
/// Collective. `clock`: seconds.
[[nodiscard]] ClockOffset clock_offset(Communicator& communicator, std::chrono::milliseconds timeout,
                                       const std::function<double()>& clock = steady_seconds);

}  // namespace lockstep::comm
