// PartSteps: what a part's forward and backward do between instructions: before which instruction something from other
// parts must have arrived, and after which one something can be sent to them. A part waits as late and sends as early
// as it can, so branches that meet are computed concurrently.
#pragma once

#include <cstddef>
#include <vector>

#include "graph/program.hpp"

namespace lockstep::exec {

struct PartStep {
  /// What is sent: in forward, an entry of Program::sent; in backward, an entry of received_gradients and its term.
  struct Sent {
    std::size_t entry = 0, term = 0;
    bool operator==(const Sent&) const = default;
  };
  std::size_t end = 0;               ///< runs all instructions before this one that earlier steps have not run
  std::vector<std::size_t> awaited;  ///< first waits for these entries of PartBoundary::received (in backward: of
                                     ///< arrivals)
  std::vector<Sent> sent;            ///< then sends these
};

struct PartSteps {
  std::vector<PartStep> forward, backward;
};

/// For the program of a part with so many entries of PartBoundary::received and arrivals.
[[nodiscard]] PartSteps steps_of(const Program& program, std::size_t received, std::size_t arrivals);

}  // namespace lockstep::exec
