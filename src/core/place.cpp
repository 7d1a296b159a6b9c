#include <fmt/format.h>

#include "lockstep/job.hpp"

namespace lockstep {

std::string Place::text() const {
  if (line == 0) return path;
  const std::string position = fmt::format("{}:{}:{}", file, line, column);
  return path.empty() ? position : fmt::format("{}: {}", position, path);
}

}  // namespace lockstep
