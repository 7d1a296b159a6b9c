// Reading from a file system that may be shared and may fail for a while. "It is not there" is an answer; "it cannot
// be read" is an error, so that a disk that does not answer is never taken for an empty one.
//
// Every function throws Error that names the path, what was tried and the system's reason: `cannot_create` where
// permissions forbid it, else `infrastructure`, which is worth trying again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace lockstep::checkpoint {

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
