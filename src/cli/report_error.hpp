// From an exception to one message on stderr and an exit code.
#pragma once

#include <exception>

namespace lockstep::cli {

/// Prints "lockstep: <message>" and returns exit_code() of the error.
int report(const std::exception& error);

}  // namespace lockstep::cli
