// Whether files of this host are still what they were: size, time of modification and inode. Their contents are not
// read, nor is ctime compared, since a new link or other permissions change that and no byte.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace lockstep::data {

struct FileState {
  std::uint64_t size = 0;
  std::int64_t seconds = 0, nanoseconds = 0;  ///< when it was modified
  std::uint64_t inode = 0;                    ///< 0: not comparable there
  bool operator==(const FileState&) const = default;
  /// All but the size, as one number.
  std::uint64_t version() const;
};

/// Inodes of file systems in user space (FUSE) may change while a file does not.
[[nodiscard]] bool has_stable_inodes(const std::string& path);
[[nodiscard]] FileState state_of(const struct stat& status, bool stable_inodes);

/// Files that a run must find unchanged. Meant for few: those that samples are read from at offsets, and lists.
class FileWatch {
 public:
  /// Remembers the state of `path`, unless it is known already, no regular file, or of an object store.
  void add(const std::string& path);
  /// Of files that are in both, the state that is known here counts.
  void add(const FileWatch& other) { states_.insert(other.states_.begin(), other.states_.end()); }
  /// Says what has become of the first file that is not as it was: "a.csv has changed: it had 5 bytes, modified at
  /// 2026-01-02 03:04:05 UTC, and now has ..."; "" if all are as they were.
  std::string changed() const;
  std::vector<std::string> paths() const;

 private:
  std::map<std::string, FileState> states_;
};

}  // namespace lockstep::data
