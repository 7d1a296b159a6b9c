// One rank's finding, known to all.
#pragma once

#include <functional>
#include <string>

#include "comm/transport/work_together.hpp"
#include "lockstep/communicator.hpp"

namespace lockstep::train {

/// Collective: calls `find` on each rank; returns on all what it returned on the first rank where that was not empty,
/// or "".
[[nodiscard]] std::string first_text(Communicator& communicator, const Operation& operation,
                                     const std::function<std::string()>& find);

}  // namespace lockstep::train
