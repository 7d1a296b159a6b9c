// What an error of the system means: the machine or its storage is at fault, which passes, or what was asked for.
#pragma once

#include <system_error>

#include "lockstep/error.hpp"

namespace lockstep {

/// `infrastructure` for an errno with which the same call may succeed later (a full disk, a file server that does not
/// answer, short memory), else `otherwise`. Every permanent Error that an errno leads to is classified by it.
[[nodiscard]] ExitCode code_of_errno(int error, ExitCode otherwise);
[[nodiscard]] ExitCode code_of_errno(const std::error_code& error, ExitCode otherwise);

}  // namespace lockstep
