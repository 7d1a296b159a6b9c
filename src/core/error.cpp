#include "lockstep/error.hpp"

#include <fmt/format.h>

namespace lockstep {

void check_failed(const char* expression, const char* file, int line, const std::string& detail) {
  throw Error(ExitCode::internal,
              fmt::format("{}:{}: {}: this must hold: {}. This is a bug in lockstep; please report it.", file, line,
                          detail, expression));
}

}  // namespace lockstep
