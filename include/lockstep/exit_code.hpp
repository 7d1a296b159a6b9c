// The exit code of a process that an error ends.
#pragma once

#include <exception>

namespace lockstep {

/// Error's own, `infrastructure` where memory is short, else `internal` (lockstep/error.hpp).
[[nodiscard]] int exit_code(const std::exception& error);

}  // namespace lockstep
