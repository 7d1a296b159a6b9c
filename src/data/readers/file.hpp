// A file opened for reading at offsets, by any number of threads; it counts the bytes it reads.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/unpack.hpp"

namespace lockstep::data {

/// Shared by all files of a data set.
using ByteCounter = std::shared_ptr<std::atomic<std::uint64_t>>;

[[nodiscard]] inline ByteCounter make_byte_counter() {
  return std::make_shared<std::atomic<std::uint64_t>>(0);
}

class File {
 public:
  /// Throws Error(data): "PATH: No such file or directory".
  File(std::string path, ByteCounter counter);
  ~File();
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::uint64_t size() const { return size_; }
  /// Fills `out` from `offset`; throws Error(data) where the file ends before.
  void read(std::uint64_t offset, std::span<std::byte> out) const;

 private:
  std::string path_;
  ByteCounter counter_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
};

/// The bytes of a whole file; of a gzip file (by its first bytes) the bytes that it unpacks to. Throws Error(data) for
/// more than limits.held_without_copy of them, and for a bomb.
[[nodiscard]] std::vector<std::byte> read_whole(const File& file, const UnpackLimits& limits = {});
/// What a gzip file unpacks to; nothing if these are more than `max_bytes`.
[[nodiscard]] std::optional<std::vector<std::byte>> read_unpacked(const File& file, const UnpackLimits& limits,
                                                                  std::uint64_t max_bytes);
[[nodiscard]] bool is_gzip(const File& file);

}  // namespace lockstep::data
