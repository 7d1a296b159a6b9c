// PartSteps: what a part's forward, and its backward, does between instructions: before which of them something must
// be there that other parts make, and after which something has been made that they read. A part waits no earlier than
// it has to and sends as soon as it can, so branches that meet are computed at the same time.
#pragma once

#include <cstddef>
#include <vector>

#include "graph/program.hpp"

namespace lockstep::exec {

struct PartStep {
  /// What is sent: of forward an entry of Program::sent, of backward one of received_gradients and its term.
  struct Sent {
    std::size_t entry = 0, term = 0;
    bool operator==(const Sent&) const = default;
  };
  std::size_t end = 0;               ///< it runs the instructions before this one that no earlier step has run
  std::vector<std::size_t> awaited;  ///< before them: entries of PartBoundary::received, of backward of arrivals
  std::vector<Sent> sent;            ///< after them
};

struct PartSteps {
  std::vector<PartStep> forward, backward;
};

/// Of the program of a part with so many entries of PartBoundary::received and arrivals.
[[nodiscard]] PartSteps steps_of(const Program& program, std::size_t received, std::size_t arrivals);

}  // namespace lockstep::exec
