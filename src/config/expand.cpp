#include "config/expand.hpp"

#include "config/files.hpp"

namespace lockstep::config {

SourceOptions expanded(SourceOptions source) {
  std::vector<std::string> paths;
  for (const auto& path : source.paths) {
    const bool expand_it = is_pattern(path) && !file_exists(path);
    const auto found = expand_it ? expand(path) : std::vector<std::string>{path};
    paths.insert(paths.end(), found.begin(), found.end());
  }
  source.paths = std::move(paths);
  return source;
}

}  // namespace lockstep::config
