#include <fmt/format.h>

#include "lockstep/job.hpp"

namespace lockstep {

std::string Place::text() const {
  // Line 0: not written, or written on the command line, as `file` then says.
  if (line == 0) return file.empty() || path.empty() ? file + path : fmt::format("{}: {}", file, path);
  const std::string position = fmt::format("{}:{}:{}", file, line, column);
  return path.empty() ? position : fmt::format("{}: {}", position, path);
}

Place JobFile::place_of(const std::string& path) const {
  const auto place = places.find(path);
  return place == places.end() ? Place{.path = path} : place->second;
}

std::vector<std::string> Job::reported() const {
  std::vector<std::string> names;
  for (const LossOptions& of_one : losses) names.push_back(of_one.name + "/loss");
  names.insert(names.end(), metrics.begin(), metrics.end());
  return names;
}

}  // namespace lockstep
