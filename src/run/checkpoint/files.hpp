// The file system as checkpoints use it.
//
// Writing takes few calls; a machine may lose power at any of them. Tests substitute their own FileSystem, which counts
// the calls, fails some of them, and drops whatever was not synced.
//
// They are read, and calls fail, as core/files says.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/files.hpp"

namespace lockstep::checkpoint {

/// A file being written.
class OutputFile {
 public:
  virtual ~OutputFile() = default;
  virtual void write(std::span<const std::byte> bytes) = 0;
  /// Syncs it to disk; only then may the file be renamed into place.
  virtual void sync() = 0;
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;
  /// Truncates an existing file.
  [[nodiscard]] virtual std::unique_ptr<OutputFile> create(const std::string& path) = 0;
  virtual void rename(const std::string& from, const std::string& to) = 0;
  /// Creates one level. Returns false if it already exists.
  virtual bool make_directory(const std::string& path) = 0;
  /// Syncs the directory's entries: what was created, renamed or removed there.
  virtual void sync_directory(const std::string& path) = 0;
  /// A file or an empty directory; does nothing if it does not exist.
  virtual void remove(const std::string& path) = 0;
};

/// The real file system.
[[nodiscard]] FileSystem& real_files();

/// Writes <path>.partial, syncs it and renames it into place; the directory is not synced. The name is the same every
/// time, so that a rank that dies here leaves nothing that the next attempt does not overwrite: the run's lock and its
/// launch's signature keep others out.
void write_whole(FileSystem& files, const std::string& path, std::string_view bytes);

/// Creates the missing levels of a path and syncs each.
void make_directories(FileSystem& files, const std::string& path);

/// Removes a directory with everything in it; does nothing if it does not exist.
void remove_tree(FileSystem& files, const std::string& path);

}  // namespace lockstep::checkpoint
