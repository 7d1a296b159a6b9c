// Communicators that record what their rank does (core/flight_recorder.hpp): all of lockstep's own do; one that an
// embedding program provides need not.
#pragma once

#include <memory>

#include "core/flight_recorder.hpp"
#include "lockstep/communicator.hpp"

namespace lockstep::comm {

class Recorded {
 public:
  Recorded() = default;
  Recorded(const Recorded&) = delete;
  Recorded& operator=(const Recorded&) = delete;
  virtual ~Recorded() = default;
  virtual std::shared_ptr<FlightRecorder> recorder() const = 0;
};

/// Null if the communicator records nothing.
[[nodiscard]] inline std::shared_ptr<FlightRecorder> recorder_of(const Communicator& communicator) {
  const auto* const recorded = dynamic_cast<const Recorded*>(&communicator);
  return recorded == nullptr ? nullptr : recorded->recorder();
}

}  // namespace lockstep::comm
