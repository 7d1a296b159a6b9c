#include "data/path.hpp"

#include <fmt/format.h>
#include <fnmatch.h>
#include <sys/stat.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <vector>

#include "core/digest.hpp"
#include "core/remote_path.hpp"
#include "data/store/client.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {

namespace {

namespace fs = std::filesystem;

/// If a file system's times are whole seconds, a change within the current second could go unnoticed.
bool is_uncertain(const timespec& time) {
  return time.tv_nsec == 0 && std::time(nullptr) - time.tv_sec < 2;
}

std::string stamp_of(const store::ObjectInfo& object) {
  return fmt::format("{} {}", object.size, object.version);
}

std::string hash_of(std::vector<std::string> lines) {
  std::sort(lines.begin(), lines.end());
  Sha256 digest;
  for (const auto& line : lines) digest.add(line + "\n");
  return digest.hex();
}

}  // namespace

PathKind kind_of(const std::string& path) {
  if (is_remote(path)) {
    const auto location = store::parse_location(path);
    if (!location.key.empty() && store::client().find(location)) return PathKind::file;
    return store::client().list(location, 1).empty() ? PathKind::nothing : PathKind::folder;
  }
  std::error_code ignored;
  const auto status = fs::status(path, ignored);
  return fs::is_directory(status) ? PathKind::folder : fs::is_regular_file(status) ? PathKind::file : PathKind::nothing;
}

std::vector<std::string> with_matching_objects(const std::vector<std::string>& paths) {
  std::vector<std::string> all;
  for (const auto& path : paths) {
    const std::size_t wild = is_remote(path) ? path.find_first_of("*?[") : std::string::npos;
    if (wild == std::string::npos) {
      all.push_back(path);
      continue;
    }
    const auto folder = store::parse_location(path.substr(0, path.rfind('/', wild)));
    const std::size_t before = all.size();
    for (const auto& object : store::client().list(folder)) {
      std::string found = store::ObjectLocation{folder.bucket, object.key}.text();
      if (::fnmatch(path.c_str(), found.c_str(), FNM_PATHNAME) == 0) all.push_back(std::move(found));
    }
    if (all.size() == before) throw Error(ExitCode::data, fmt::format("{}: no object matches the pattern", path));
  }
  return all;
}

std::string whole_path(const std::string& path) {
  return is_remote(path) ? path : fs::absolute(path).lexically_normal().string();
}

// Includes ctime, because programs can set mtime.
std::string stamp_of_file(const std::string& path, bool& uncertain) {
  if (is_remote(path)) {
    const auto object = store::client().find(store::parse_location(path));
    return object ? stamp_of(*object) : "absent";
  }
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return "absent";
  uncertain = uncertain || is_uncertain(status.st_mtim) || is_uncertain(status.st_ctim);
  return fmt::format("{} {} {}.{:09} {}.{:09}", status.st_size, status.st_ino, status.st_mtim.tv_sec,
                     status.st_mtim.tv_nsec, status.st_ctim.tv_sec, status.st_ctim.tv_nsec);
}

// Of this host also over the folders, whose times change when names are added or removed.
std::string stamp_of_folder(const std::string& path, bool& uncertain) {
  std::vector<std::string> lines;
  if (is_remote(path)) {
    for (const auto& object : store::client().list(store::parse_location(path))) {
      lines.push_back(object.key + "\n" + stamp_of(object));
    }
    return hash_of(std::move(lines));
  }
  lines.push_back(stamp_of_file(path, uncertain));
  std::error_code failed;
  const auto options = fs::directory_options::follow_directory_symlink;
  for (auto at = fs::recursive_directory_iterator(path, options, failed);
       !failed && at != fs::recursive_directory_iterator(); at.increment(failed)) {
    lines.push_back(at->path().string() + "\n" + stamp_of_file(at->path().string(), uncertain));
  }
  uncertain = uncertain || failed;
  return hash_of(std::move(lines));
}

}  // namespace lockstep::data
