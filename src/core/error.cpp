#include "lockstep/error.hpp"

#include <fmt/format.h>

#include <new>
#include <system_error>

#include "core/errno_code.hpp"
#include "lockstep/registry.hpp"

namespace lockstep {

void check_failed(const char* expression, const char* file, int line, const std::string& detail) {
  throw Error(ExitCode::internal,
              fmt::format("{}:{}: {}: this must hold: {}. This is a bug in lockstep; please report it.", file, line,
                          detail, expression));
}

int exit_code(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return static_cast<int>(ExitCode::infrastructure);
  const auto* const system = dynamic_cast<const std::system_error*>(&error);
  if (system != nullptr) return static_cast<int>(code_of_errno(system->code(), ExitCode::internal));
  const auto* const own = dynamic_cast<const Error*>(&error);
  return static_cast<int>(own == nullptr ? ExitCode::internal : own->code());
}

void require_whole(const std::string& what, const char* missing) {
  if (*missing == '\0') return;
  throw Error(ExitCode::usage, fmt::format("the {}: expected `{}` to be set", what, missing));
}

}  // namespace lockstep
