// What compressed files may unpack to, and copies on disk of those that are large.
//
// A file that unpacks to little is held in the memory of each rank. A larger one (gzip, or a compressed tar) is
// unpacked once a host into the cache directory, in a stream, and all ranks of the host read that copy at offsets.
// Where there is no such directory, and for formats that are no tar (zip, 7z), memory has to do, up to a bound.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "data/index_cache.hpp"

struct archive;  // libarchive's

namespace lockstep::data {

/// A file that unpacks to more than `expansion` times its own size, and to more than `small` bytes, is taken for a
/// decompression bomb. (gzip expands zeros 1,030 times; text and raw images 2 to 20 times.)
struct UnpackLimits {
  std::uint64_t small = std::uint64_t{64} << 20;
  std::uint64_t expansion = 256;
  std::uint64_t held = std::uint64_t{256} << 20;             ///< bytes in memory, where a copy on disk can be made
  std::uint64_t held_without_copy = std::uint64_t{4} << 30;  ///< where none can
  std::string cache_directory = default_cache_directory();   ///< empty: there is none
};

/// Counts what a file unpacks to.
class UnpackBudget {
 public:
  /// `packed_bytes` is the size of the file `path`.
  UnpackBudget(std::string path, std::uint64_t packed_bytes, const UnpackLimits& limits);
  /// Throws Error(data) where `unpacked_bytes` in all are what a bomb has.
  void check(std::uint64_t unpacked_bytes) const;

 private:
  std::string path_;
  std::uint64_t packed_bytes_, max_;
};

struct FreeArchive {
  void operator()(::archive* handle) const;
};
/// An archive of libarchive's that is read.
using ArchiveHandle = std::unique_ptr<::archive, FreeArchive>;

/// Tells libarchive which compressions a file may have. Not all that it knows: some of its filters start a program, by
/// name, that a file's first bytes choose.
void support_compressions(::archive* handle);

/// A copy of what is in the compressed file `path`, or why there is none.
struct UnpackedCopy {
  std::string path;
  std::string problem;  ///< "", where nothing went wrong: there may be no cache directory
};

/// The copy that was made before of this very file (path, size, times), if there is one.
[[nodiscard]] std::optional<std::string> find_unpacked_copy(const std::string& path, const UnpackLimits& limits);

/// Makes it: under another name, then renamed, so that a copy is whole or not there. Copies of earlier states of the
/// file are removed. Throws Error(data) for a damaged file and for a bomb.
[[nodiscard]] UnpackedCopy make_unpacked_copy(const std::string& path, const UnpackLimits& limits);

/// Throws Error(data): the file unpacks to more than can be held. `problem`: why there is no copy on disk.
[[noreturn]] void refuse_to_hold(const std::string& path, const UnpackLimits& limits, const std::string& problem);

}  // namespace lockstep::data
