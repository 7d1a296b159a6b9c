// From an exception to one message on stderr and an exit code.
#pragma once

#include <exception>

namespace lockstep::cli {

/// The error's exit code; anything but Error is internal (70).
[[nodiscard]] int exit_code(const std::exception& error);

/// Prints "lockstep: <message>" and returns the error's exit code; anything but Error is internal (70).
int report(const std::exception& error);

}  // namespace lockstep::cli
