#include "store/block_cache.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <utility>
#include <vector>

#include "core/cache_directory.hpp"
#include "core/cache_lock.hpp"
#include "core/files.hpp"
#include "lockstep/error.hpp"
#include "store/checksums.hpp"

namespace lockstep::store {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kRoomEvery = std::uint64_t{256} << 20;  // bytes after which room is looked for
constexpr std::uint64_t kFreePart = 20;                         // a twentieth of the disk stays free
constexpr std::time_t kUsedAgain = 60;                          // seconds after which a use is noted again

constexpr std::uint64_t kPiece = std::uint64_t{64} << 10;  // bytes under one checksum

bool read_all(int descriptor, std::uint64_t offset, std::span<std::byte> out) {
  for (std::size_t filled = 0; filled < out.size();) {
    const auto got = ::pread(descriptor, out.data() + filled, out.size() - filled, static_cast<off_t>(offset + filled));
    if (got <= 0) return false;
    filled += static_cast<std::size_t>(got);
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
  std::copy_n(pieces.begin() + static_cast<std::ptrdiff_t>(offset - begin), out.size(), out.begin());
  if (std::time(nullptr) - status.st_mtim.tv_sec > kUsedAgain) (void)::futimens(file.get(), nullptr);
  return true;
}

struct KeptBlock {
  fs::file_time_type used;
  std::uint64_t bytes;
  fs::path path;
};

std::vector<KeptBlock> blocks_in(const std::string& directory) {
  std::vector<KeptBlock> blocks;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(directory, failed)) {
    std::error_code gone;  // another process may be making room, too
    const auto bytes = entry.file_size(gone);
    const auto used = entry.last_write_time(gone);
    if (!gone) blocks.push_back({used, bytes, entry.path()});
  }
  std::sort(blocks.begin(), blocks.end(), [](const auto& a, const auto& b) { return a.used < b.used; });
  return blocks;
}

}  // namespace

void BlockCache::read(const std::string& object, std::uint64_t number, std::uint64_t bytes, std::uint64_t offset,
                      std::span<std::byte> out, const Fetch& fetch) {
  const std::string path = fmt::format("{}/{}-{}", directory_, object, number);
  if (read_block(path, bytes, offset, out)) return;
  std::error_code failed;
  fs::create_directories(directory_, failed);
  CacheLock lock = lock_to_make(path);
  if (read_block(path, bytes, offset, out)) return unlock_made(lock);  // another process was faster
  std::vector<std::byte> block(bytes);
  fetch(block);
  std::copy_n(block.begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
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
  make_room();
}

void BlockCache::make_room() const {
  fs::space_info disk{};
  try {
    disk = space_(directory_);
  } catch (const fs::filesystem_error&) {
    return;
  }
  const auto blocks = blocks_in(directory_);
  std::uint64_t all = 0;
  for (const auto& block : blocks) all += block.bytes;
  const std::uint64_t wanted = disk.capacity / kFreePart;
  std::uint64_t too_much = disk.available < wanted ? wanted - disk.available : 0;
  if (limit_ > 0 && all > limit_) too_much = std::max(too_much, all - limit_);
  for (const auto& block : blocks) {
    if (too_much == 0) return;
    std::error_code failed;  // another process may have taken it
    if (fs::remove(block.path, failed)) too_much -= std::min(too_much, block.bytes);
  }
}

BlockCache& block_cache() {
  static BlockCache cache = [] {
    const std::string directory = cache_directory();
    return BlockCache(directory.empty() ? "" : directory + "/objects", cache_limit());
  }();
  return cache;
}

}  // namespace lockstep::store
