// The file system as a checkpoint sees it.
//
// Writing takes few calls, each a point at which a machine may lose power. Tests put their own FileSystem in its place,
// which counts the calls, refuses some, and drops what was not synced.
//
// Reading is from a file system that may be shared and may fail for a while. "It is not there" is an answer; "it cannot
// be read" is an error, so that a disk that does not answer is never taken for an empty one.
//
// Every call throws Error that names the path, what was tried and the system's reason: `cannot_create` where
// permissions forbid it, else `infrastructure`, which is worth trying again.
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

/// Names in a directory, sorted, without "." and ".."; none where there is no such directory.
[[nodiscard]] std::vector<std::string> names_in(const std::string& directory);

[[nodiscard]] bool is_there(const std::string& path);

/// A file that is read from its first byte to its last.
class InputFile {
 public:
  /// nullopt where there is none. A folder of that name is Error(data).
  [[nodiscard]] static std::optional<InputFile> open(const std::string& path);
  ~InputFile();
  InputFile(InputFile&& other) noexcept;
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  InputFile& operator=(InputFile&&) = delete;

  [[nodiscard]] std::uint64_t size() const { return size_; }
  /// The next bytes, at most out.size(); 0 at the end.
  [[nodiscard]] std::size_t read(std::span<std::byte> out);

 private:
  InputFile(std::string path, int descriptor, std::uint64_t size);
  std::string path_;
  int descriptor_;
  std::uint64_t size_;
};

/// All bytes of a file; nullopt where there is none. `read_some` is called after each call to the file system.
[[nodiscard]] std::optional<std::string> read_if_there(const std::string& path,
                                                       const std::function<void()>& read_some = {});

}  // namespace lockstep::checkpoint
