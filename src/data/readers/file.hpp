// Bytes at offsets, from a file, an unpacked gzip file, or a file in an archive (data/archive.hpp).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "data/file_state.hpp"
#include "data/store/object.hpp"
#include "data/unpack.hpp"

namespace lockstep::data {

/// Shared by all files of a data set.
using ByteCounter = std::shared_ptr<std::atomic<std::uint64_t>>;

[[nodiscard]] inline ByteCounter make_byte_counter() {
  return std::make_shared<std::atomic<std::uint64_t>>(0);
}

class ByteSource {
 public:
  explicit ByteSource(std::string name) : name_(std::move(name)) {}
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;
  virtual ~ByteSource() = default;
  const std::string& name() const { return name_; }  ///< for messages
  virtual std::uint64_t size() const = 0;
  /// Fills `out` from `offset`; throws Error(data) if the bytes end too early. Thread-safe.
  virtual void read(std::uint64_t offset, std::span<std::byte> out) const = 0;

 private:
  std::string name_;
};

/// A file that stays open, or an object of an object store; counts the bytes that are read.
class File final : public ByteSource {
 public:
  /// Throws Error(data): "PATH: No such file or directory", "s3://BUCKET/KEY: there is no such object".
  File(const std::string& path, ByteCounter counter) : File(path, std::move(counter), path) {}
  /// `name`: of the file that this one is a copy of.
  File(std::string path, ByteCounter counter, std::string name);
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() override;

  const std::string& path() const { return path_; }
  std::uint64_t size() const override { return size_; }
  void read(std::uint64_t offset, std::span<std::byte> out) const override;
  /// As it is now; of a file of this host.
  FileState state(bool stable_inodes) const;

 private:
  std::string path_;
  ByteCounter counter_;
  std::unique_ptr<store::Object> object_;  ///< null: a file
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
};

/// A gzip file is unpacked as a whole, into memory, or, if large, into a copy on disk; any other file is read on
/// demand. Throws Error(data) for a gzip file beyond the limits.
[[nodiscard]] std::unique_ptr<ByteSource> open_bytes(const std::string& path, const ByteCounter& counter,
                                                     const UnpackLimits& limits = {});

/// The bytes of a whole file; for a gzip file (recognised by its first bytes), the unpacked ones. Throws Error(data)
/// for more than limits.held_without_copy of them, and for a decompression bomb.
[[nodiscard]] std::vector<std::byte> read_whole(const File& file, const UnpackLimits& limits = {});
/// The unpacked bytes of a gzip file; nothing if there are more than `max_bytes`.
[[nodiscard]] std::optional<std::vector<std::byte>> read_unpacked(const File& file, const UnpackLimits& limits,
                                                                  std::uint64_t max_bytes);
[[nodiscard]] bool is_gzip(const ByteSource& file);

}  // namespace lockstep::data
