// The file system: reading has three results, and a file is written completely or not at all.
//
// Reading returns what is there, or that nothing is there; all else is an Error, so that a disk that does not answer is
// never mistaken for an empty one. Every Error names the path, what was attempted and the system's reason. Its code is
// `cannot_create` if permissions forbid it, or the folder of a new file is missing, else `infrastructure`, which is
// worth retrying.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
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

// Reading and writing whole files as strings.

/// All bytes of a file, also of a pipe, whose size is not known beforehand; nullopt if it does not exist. Throws Error
/// if it cannot be read. `read_some` is called after each call to the file system.
[[nodiscard]] std::optional<std::string> read_whole_file(const std::string& path,
                                                         const std::function<void()>& read_some = {});

/// A file of /proc or /sys; "" if the kernel does not show it: the process has ended, or is another user's.
[[nodiscard]] std::string read_kernel_file(const std::string& path);

/// Replaces a file as NewFile does, and creates its folder. Throws Error.
void write_whole_file(const std::string& path, std::string_view bytes);

/// The same, for files that are not worth an error: returns its message, or "".
[[nodiscard]] std::string try_write_whole_file(const std::string& path, std::string_view bytes);

// A file that one process at a time may hold, among all hosts that share its file system. What the holder writes into
// it says who it is.

/// The lock is flock()'s: it ends with the process, and on a network file system with the lease of a host that is gone.
/// "Another process holds it" is a result; every call throws Error if the file system fails, as core/files does, and
/// Error(cannot_create) if it has no locks.
class LockedFile {
 public:
  /// Opens the file, and creates it if it is missing, but not its folder.
  explicit LockedFile(const std::string& path);

  /// Returns false if another process holds it; never waits.
  [[nodiscard]] bool try_lock();
  /// Whether nobody holds it; not to be asked by its holder.
  [[nodiscard]] bool is_free();
  /// Replaces its text, for the holder. It is on disk when this returns.
  void write(const std::string& text);
  /// For the holder: if the file has been removed (by a cleaner of old files, or with its folder), makes and locks it
  /// again, with its text. Returns false if another process has taken the new one.
  [[nodiscard]] bool renew();

  const std::string& path() const { return file_.path(); }

 private:
  [[nodiscard]] bool lock(int how);
  bool has_its_name() const;
  OpenFile file_;
  std::string text_;
};

}  // namespace lockstep
