// Limits for unpacking compressed files, and copies on disk of large ones.
//
// A file that unpacks to little is kept in the memory of each rank. A larger one (gzip, or a compressed tar) is
// unpacked once per host into the cache directory, as a stream, and all ranks of the host read that copy at offsets,
// which verifies its checksums (unpacked_copy.hpp). If there is no such directory, and for other formats (zip, 7z),
// memory is used, up to a limit.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/cache_directory.hpp"

struct archive;  // from libarchive

namespace lockstep::data {

/// A file that unpacks to more than `expansion` times its own size, and to more than `small` bytes, is considered a
/// decompression bomb. (gzip expands zeros 1,030 times; text and raw images 2 to 20 times.)
struct UnpackLimits {
  std::uint64_t small = std::uint64_t{64} << 20;
  std::uint64_t expansion = 256;
  std::uint64_t held = std::uint64_t{256} << 20;              ///< bytes in memory if a copy on disk can be made
  std::uint64_t held_without_copy = std::uint64_t{4} << 30;   ///< bytes in memory if it cannot
  std::string cache_directory = lockstep::cache_directory();  ///< empty: none
};

/// Counts the bytes that a file unpacks to.
class UnpackBudget {
 public:
  /// `packed_bytes` is the size of the file `path`.
  UnpackBudget(std::string path, std::uint64_t packed_bytes, const UnpackLimits& limits);
  /// Throws Error(data) if `unpacked_bytes` in total indicate a bomb.
  void check(std::uint64_t unpacked_bytes) const;

 private:
  std::string path_;
  std::uint64_t packed_bytes_, max_;
};

struct FreeArchive {
  void operator()(::archive* handle) const;
};
/// A libarchive archive that is being read.
using ArchiveHandle = std::unique_ptr<::archive, FreeArchive>;

/// Tells libarchive which compressions to support. Not all that it knows: some of its filters run a program whose name
/// depends on the file's first bytes.
void support_compressions(::archive* handle);

/// Throws Error(data): the file unpacks to more than can be kept in memory. `problem`: why there is no copy on disk.
[[noreturn]] void refuse_to_hold(const std::string& path, const UnpackLimits& limits, const std::string& problem);

}  // namespace lockstep::data
