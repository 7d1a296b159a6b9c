#include "lockstep/exit_code.hpp"

#include <new>

#include "lockstep/error.hpp"

namespace lockstep {

int exit_code(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return static_cast<int>(ExitCode::infrastructure);
  const auto* const own = dynamic_cast<const Error*>(&error);
  return static_cast<int>(own == nullptr ? ExitCode::internal : own->code());
}

}  // namespace lockstep
