#include "core/errno_code.hpp"

#include <cerrno>

namespace lockstep {

ExitCode code_of_errno(int error, ExitCode otherwise) {
  switch (error) {
    case EAGAIN:
    case EDQUOT:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case EIO:
    case EMFILE:
    case ENFILE:
    case ENOLCK:
    case ENOMEM:
    case ENOSPC:
    case ENOTCONN:
    case ESTALE:
    case ETIMEDOUT:
      return ExitCode::infrastructure;
    default:
      return otherwise;
  }
}

ExitCode code_of_errno(const std::error_code& error, ExitCode otherwise) {
  const bool of_system = error.category() == std::generic_category() || error.category() == std::system_category();
  return of_system ? code_of_errno(error.value(), otherwise) : otherwise;
}

}  // namespace lockstep
