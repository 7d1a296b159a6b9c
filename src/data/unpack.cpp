#include "data/unpack.hpp"

#include <archive.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lockstep/error.hpp"

namespace lockstep::data {

void FreeArchive::operator()(::archive* handle) const {
  archive_read_free(handle);
}

void support_compressions(::archive* handle) {
  for (auto* const filter :
       {archive_read_support_filter_gzip, archive_read_support_filter_bzip2, archive_read_support_filter_compress,
        archive_read_support_filter_xz, archive_read_support_filter_lzma, archive_read_support_filter_lz4,
        archive_read_support_filter_zstd}) {
    filter(handle);  // if this libarchive lacks one, an error occurs when a file needs it
  }
}

UnpackBudget::UnpackBudget(std::string path, std::uint64_t packed_bytes, const UnpackLimits& limits)
    : path_(std::move(path)),
      packed_bytes_(packed_bytes),
      max_(std::max(limits.small, packed_bytes * limits.expansion)) {}

void UnpackBudget::check(std::uint64_t unpacked_bytes) const {
  if (unpacked_bytes <= max_) return;
  throw Error(
      ExitCode::data,
      fmt::format("{}: {} bytes that unpack to more than {}, as a decompression bomb does; if the data are sound, "
                  "unpack the file yourself",
                  path_, packed_bytes_, max_));
}

void refuse_to_hold(const std::string& path, const UnpackLimits& limits, const std::string& problem) {
  throw Error(
      ExitCode::data,
      fmt::format("{}: unpacks to more than {} MiB, which would be held in the memory of each rank{}. Unpack it "
                  "yourself, or use a plain .tar or `lockstep data pack`",
                  path, limits.held_without_copy >> 20,
                  problem.empty() ? "" : fmt::format(" (no copy on disk: {})", problem)));
}

}  // namespace lockstep::data
