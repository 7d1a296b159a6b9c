// The file system as checkpoints use it.
//
// Writing takes few calls; a machine may lose power at any of them. Tests substitute their own FileSystem, which counts
// the calls, fails some of them, and drops whatever was not synced.
//
// Files are read from a file system that may be shared and may fail for a while. "It does not exist" is a result; "it
// cannot be read" is an error, so that a disk that does not respond is never mistaken for an empty one.
//
// Every call throws an Error that names the path, what was attempted and the system's reason: `cannot_create` if
// permissions forbid it, else `infrastructure`, which is worth retrying.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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

/// Writes <path>.partial, syncs it and renames it into place; the directory is not synced.
void write_whole(FileSystem& files, const std::string& path, std::string_view bytes);

/// Creates the missing levels of a path and syncs each.
void make_directories(FileSystem& files, const std::string& path);

/// Removes a directory with everything in it; does nothing if it does not exist.
void remove_tree(FileSystem& files, const std::string& path);

/// Names in a directory, sorted, without "." and ".."; none if the directory does not exist.
[[nodiscard]] std::vector<std::string> names_in(const std::string& directory);

[[nodiscard]] bool is_there(const std::string& path);

/// A file that is read sequentially.
class InputFile {
 public:
  /// nullopt if it does not exist. If it is a folder, throws Error(data).
  [[nodiscard]] static std::optional<InputFile> open(const std::string& path);
  ~InputFile();
  InputFile(InputFile&& other) noexcept;
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  InputFile& operator=(InputFile&&) = delete;

  [[nodiscard]] std::uint64_t size() const { return size_; }
  /// Reads the next bytes, at most out.size(); returns 0 at the end.
  [[nodiscard]] std::size_t read(std::span<std::byte> out);

 private:
  InputFile(std::string path, int descriptor, std::uint64_t size);
  std::string path_;
  int descriptor_;
  std::uint64_t size_;
};

/// All bytes of a file; nullopt if it does not exist. `read_some` is called after each call to the file system.
[[nodiscard]] std::optional<std::string> read_if_there(const std::string& path,
                                                       const std::function<void()>& read_some = {});

}  // namespace lockstep::checkpoint
