#include "data/file_state.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/vfs.h>

#include <cerrno>
#include <cstring>
#include <ctime>

#include "core/remote_path.hpp"

namespace lockstep::data {
namespace {

constexpr long kFuse = 0x65735546;  // FUSE_SUPER_MAGIC of linux/magic.h

std::string described(const FileState& state) {
  return fmt::format("{} bytes, modified at {:%Y-%m-%d %H:%M:%S} UTC", state.size, fmt::gmtime(state.seconds));
}

}  // namespace

std::uint64_t FileState::version() const {
  std::uint64_t mixed = inode;
  for (const std::int64_t part : {seconds, nanoseconds}) {
    mixed = (mixed ^ static_cast<std::uint64_t>(part)) * 0x9E3779B97F4A7C15;
    mixed ^= mixed >> 32;
  }
  return mixed;
}

bool has_stable_inodes(const std::string& path) {
  struct statfs system {};
  return ::statfs(path.c_str(), &system) == 0 && system.f_type != kFuse;
}

FileState state_of(const struct stat& status, bool stable_inodes) {
  return {static_cast<std::uint64_t>(status.st_size), status.st_mtim.tv_sec, status.st_mtim.tv_nsec,
          stable_inodes ? status.st_ino : 0};
}

void FileWatch::add(const std::string& path) {
  struct stat status {};
  if (is_remote(path) || states_.contains(path)) return;
  if (::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode)) {
    states_[path] = state_of(status, has_stable_inodes(path));
  }
}

std::vector<std::string> FileWatch::paths() const {
  std::vector<std::string> paths;
  for (const auto& [path, state] : states_) paths.push_back(path);
  return paths;
}

std::string FileWatch::changed() const {
  for (const auto& [path, before] : states_) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) return fmt::format("{} is gone: {}", path, std::strerror(errno));
    const FileState now = state_of(status, before.inode != 0);
    if (now == before) continue;
    if (now.size == before.size && now.seconds == before.seconds) {
      return fmt::format("{} has been replaced by another file of {}", path, described(now));
    }
    return fmt::format("{} has changed: it had {}, and now has {}", path, described(before), described(now));
  }
  return "";
}

}  // namespace lockstep::data
