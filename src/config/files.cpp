#include "config/files.hpp"

#include <glob.h>

#include <algorithm>
#include <filesystem>

#include "config/yaml_reader.hpp"
#include "core/remote_path.hpp"

namespace lockstep::config {

bool file_exists(const std::string& path) {
  std::error_code ignored;
  return is_remote(path) || std::filesystem::exists(path, ignored);
}

bool exists_or_goes_into_a_file(const std::string& path) {
  std::error_code ignored;
  for (std::filesystem::path at = path; !at.empty() && at != at.parent_path(); at = at.parent_path()) {
    if (std::filesystem::is_regular_file(at, ignored)) return true;
  }
  return file_exists(path);
}

bool is_pattern(const std::string& path) {
  return !is_remote(path) && path.find_first_of("*?[") != std::string::npos;
}

std::vector<std::string> expand(const std::string& pattern) {
  std::vector<std::string> paths;
  glob_t found{};
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0) paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::string resolve(const Cursor& at, const std::string& path, bool (*is_there)(const std::string&)) {
  const std::string& folder = at.session().folder;
  if (at.node().mark.command_line || folder.empty() || path.empty() || path.front() == '/' || is_remote(path))
    return path;
  const std::string there = folder + "/" + path;
  const bool exists = is_pattern(path) ? !expand(there).empty() : is_there(there);
  if (exists && !is_utf8(folder)) {
    at.problem(
        "expected the job in a folder whose name is in UTF-8, found another encoding; rename the folder, or run the "
        "command in it");
    return path;
  }
  return exists ? there : path;
}

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
