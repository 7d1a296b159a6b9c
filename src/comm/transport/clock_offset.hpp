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
  double error = 0;    ///< upper bound of the error: half the shortest round trip to each host on the way
};

/// One rank per host measures, and the ranks of a host, which share a clock, get its result; 0 on rank 0's host. Hosts
/// ask each other along a binomial tree, so the time grows with the logarithm of their number. Each asks several times
/// and keeps the fastest answer. Collective. `clock`: seconds.
[[nodiscard]] ClockOffset clock_offset(Communicator& communicator, std::chrono::milliseconds timeout,
                                       const std::function<double()>& clock = steady_seconds);

}  // namespace lockstep::comm
