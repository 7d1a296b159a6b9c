#include "cli/report_error.hpp"

#include <fmt/format.h>

#include <cstdio>

#include "lockstep/error.hpp"

namespace lockstep::cli {

int report(const std::exception& error) {
  fmt::print(stderr, "lockstep: {}\n", error.what());
  const auto* own = dynamic_cast<const Error*>(&error);
  return static_cast<int>(own == nullptr ? ExitCode::internal : own->code());
}

}  // namespace lockstep::cli
