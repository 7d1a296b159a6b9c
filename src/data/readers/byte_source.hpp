// Bytes at offsets, wherever they lie: a file, a gzip file unpacked into memory, a file of an archive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "data/archive.hpp"
#include "data/readers/file.hpp"

namespace lockstep::data {

class ByteSource {
 public:
  explicit ByteSource(std::string name) : name_(std::move(name)) {}
  virtual ~ByteSource() = default;
  [[nodiscard]] const std::string& name() const { return name_; }  ///< for messages
  [[nodiscard]] virtual std::uint64_t size() const = 0;
  /// Fills `out` from `offset`; throws Error(data) where the bytes end before. Any thread.
  virtual void read(std::uint64_t offset, std::span<std::byte> out) const = 0;

 private:
  std::string name_;
};

/// A gzip file is unpacked, whole: into memory, or a large one into a copy on disk; any other file is read where it is
/// asked for. Throws Error(data) for a gzip file beyond the limits.
[[nodiscard]] std::unique_ptr<ByteSource> open_bytes(const std::string& path, const ByteCounter& counter,
                                                     const UnpackLimits& limits = {});
[[nodiscard]] std::unique_ptr<ByteSource> open_member(std::shared_ptr<const FileTree> tree, FileTree::Entry entry);

}  // namespace lockstep::data
