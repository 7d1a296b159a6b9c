// The file system: reading has three results, and a file is written completely or not at all.
//
// Reading returns what is there, or that nothing is there; all else is an Error, so that a disk that does not answer is
// never mistaken for an empty one. Every Error names the path, what was attempted and the system's reason. Its code is
// `cannot_create` if permissions forbid it, or the folder of a new file is missing, else `infrastructure`, which is
// worth retrying.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/handle.hpp"

namespace lockstep {

struct DescriptorTraits {
  using Value = int;  ///< 0: none, so stdin cannot be owned
  static void destroy(int descriptor) noexcept;
};
using Descriptor = Handle<DescriptorTraits>;

/// A file or folder that has been opened, with `flags` of open(). A file that is created gets mode 0666 less the umask.
class OpenFile {
 public:
  OpenFile(std::string path, int flags);
  /// Writes all of it; on a full disk, part of it.
  void write(std::span<const std::byte> bytes) const;
  /// Appends all of it or, on a full disk, nothing. For files opened with O_APPEND that have one writer.
  void append(std::string_view text) const;
  /// On disk when it returns.
  void sync() const;
  std::uint64_t size() const;
  int descriptor() const { return descriptor_.get(); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  Descriptor descriptor_;
};

/// A file that replaces another one, or none, at once: it is written under a name that nobody else uses, in the same
/// folder, and renamed when all of it is on disk. Unless that happens, the destructor removes it.
class NewFile {
 public:
  explicit NewFile(std::string path);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  void write(std::span<const std::byte> bytes) const { file_.write(bytes); }
  const OpenFile& file() const { return file_; }
  /// Gives it its name. File and name are on disk when this returns.
  void commit();

 private:
  std::string path_;
  OpenFile file_;
  bool committed_ = false;
};

/// Ends the names of files that are still being written; after a crash one may be left.
inline constexpr std::string_view kNewFileEnding = ".new";

/// A file that is read sequentially.
class InputFile {
 public:
  /// nullopt if it does not exist. If it is a folder, throws Error(data).
  [[nodiscard]] static std::optional<InputFile> open(const std::string& path);
  /// 0 for files of /proc and for pipes.
  std::uint64_t size() const { return size_; }
  /// Reads the next bytes, at most out.size(); returns 0 at the end.
  [[nodiscard]] std::size_t read(std::span<std::byte> out);

 private:
  InputFile(std::string path, Descriptor descriptor) : path_(std::move(path)), descriptor_(std::move(descriptor)) {}
  std::string path_;
  Descriptor descriptor_;
  std::uint64_t size_ = 0;
};

[[nodiscard]] bool is_there(const std::string& path);

/// Names in a directory, sorted, without "." and ".."; none if the directory does not exist.
[[nodiscard]] std::vector<std::string> names_in(const std::string& directory);

/// Creates the missing levels of a path.
void make_folders(const std::string& path);

/// What was created, renamed or removed in a folder is on disk when this returns.
void sync_folder(const std::string& path);

}  // namespace lockstep
