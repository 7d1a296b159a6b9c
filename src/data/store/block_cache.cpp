#include "data/store/block_cache.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <utility>
#include <vector>

#include "core/cache_directory.hpp"
#include "core/files.hpp"
#include "data/store/checksums.hpp"
#include "lockstep/error.hpp"

namespace lockstep::store {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kRoomEvery = std::uint64_t{256} << 20;  // bytes after which room is looked for
constexpr std::uint64_t kPiece = std::uint64_t{64} << 10;       // bytes under one checksum

bool read_all(int descriptor, std::uint64_t offset, std::span<std::byte> out) {
  for (std::size_t filled = 0; filled < out.size();) {
    const auto got = ::pread(descriptor, out.data() + filled, out.size() - filled, static_cast<off_t>(offset + filled));
    if (got <= 0) return false;
    filled += got;
  }
  return true;
}

/// Whether the file was there, whole and sound where it was read, and `out` is filled.
bool read_block(const std::string& path, std::uint64_t bytes, std::uint64_t offset, std::span<std::byte> out) {
  const Descriptor file(std::max(0, ::open(path.c_str(), O_RDONLY | O_CLOEXEC)));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0 ||
      static_cast<std::uint64_t>(status.st_size) != bytes + pieces_of(bytes, kPiece) * sizeof(std::uint32_t)) {
    return false;
  }
  const std::uint64_t first = offset / kPiece, end = pieces_of(offset + out.size(), kPiece), begin = first * kPiece;
  std::vector<std::byte> pieces(std::min(bytes, end * kPiece) - begin);
  std::vector<std::uint32_t> sums(end - first);
  if (!read_all(file.get(), begin, pieces) ||
      !read_all(file.get(), bytes + first * sizeof(std::uint32_t), std::as_writable_bytes(std::span(sums))) ||
      checksums_of(pieces, kPiece) != sums) {
    return false;
  }
  std::copy_n(pieces.begin() + (offset - begin), out.size(), out.begin());
  note_use(path);
  return true;
}

}  // namespace

BlockCache::BlockCache(const std::string& cache, std::uint64_t limit, DiskSpace space)
    : cache_(cache),
      objects_(cache.empty() ? "" : cache + "/" + kObjectsFolder),
      limit_(limit),
      space_(std::move(space)) {}

void BlockCache::read(const std::string& object, std::uint64_t number, std::uint64_t bytes, std::uint64_t offset,
                      std::span<std::byte> out, const Fetch& fetch) {
  const std::string path = fmt::format("{}/{}-{}", objects_, object, number);
  if (read_block(path, bytes, offset, out)) return;
  std::error_code failed;
  fs::create_directories(objects_, failed);
  CacheLock lock = lock_to_make(path);
  if (read_block(path, bytes, offset, out)) return unlock_made(lock);  // another process was faster
  std::vector<std::byte> block(bytes);
  fetch(block);
  std::copy_n(block.begin() + offset, out.size(), out.begin());
  keep(path, block);
  unlock_made(lock);
}

void BlockCache::keep(const std::string& path, std::span<const std::byte> block) {
  try {
    NewFile file(path);
    file.write(block);
    const auto sums = checksums_of(block, kPiece);
    file.write(std::as_bytes(std::span(sums)));
    file.commit();
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch): fetched again when it is wanted again
  }
  if ((kept_ += block.size()) < (limit_ == 0 ? kRoomEvery : std::min(kRoomEvery, limit_ / 8))) return;
  kept_ = 0;
  make_room(cache_, limit_, path, space_);
}

BlockCache& block_cache() {
  static BlockCache cache(cache_directory(), cache_limit());
  return cache;
}

}  // namespace lockstep::store
