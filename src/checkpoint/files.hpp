// The file system as a checkpoint sees it: few calls, each a point at which a machine may lose power. Tests put
// their own in its place, which counts the calls, refuses some, and drops what was not synced.
//
// Every call throws Error(infrastructure) that names the path, what was tried and the system's reason.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace lockstep::checkpoint {

/// A file that is being written.
class OutputFile {
 public:
  virtual ~OutputFile() = default;
  virtual void write(std::span<const std::byte> bytes) = 0;
  /// To the disk; only then may the file be renamed into place.
  virtual void sync() = 0;
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;
  /// One that is there is emptied.
  [[nodiscard]] virtual std::unique_ptr<OutputFile> create(const std::string& path) = 0;
  virtual void rename(const std::string& from, const std::string& to) = 0;
  /// One level. False: it is there already.
  virtual bool make_directory(const std::string& path) = 0;
  /// Makes the names in it last: what was created, renamed or removed there.
  virtual void sync_directory(const std::string& path) = 0;
  /// A file or an empty directory; nothing there is fine.
  virtual void remove(const std::string& path) = 0;
};

/// The real one.
[[nodiscard]] FileSystem& real_files();

/// Writes <path>.partial, syncs it and renames it into place; the directory is not synced.
void write_whole(FileSystem& files, const std::string& path, std::string_view bytes);

/// Makes what is missing of a path, level by level, so that it lasts.
void make_directories(FileSystem& files, const std::string& path);

/// A directory with all that is in it; nothing there is fine.
void remove_tree(FileSystem& files, const std::string& path);

}  // namespace lockstep::checkpoint
