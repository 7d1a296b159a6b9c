#include "cli/report_error.hpp"

#include <fmt/format.h>

#include <cstdio>

#include "lockstep/error.hpp"

namespace lockstep::cli {

int exit_code(const std::exception& error) {
  const auto* own = dynamic_cast<const Error*>(&error);
  return static_cast<int>(own == nullptr ? ExitCode::internal : own->code());
}

int report(const std::exception& error) {
  fmt::print(stderr, "lockstep: {}\n", error.what());
  return exit_code(error);
}

}  // namespace lockstep::cli
