// BlockCache: parts of objects on this host's disk, a file each, for all processes of the host.
//
// A block is written under another name and renamed, so it is complete or absent; its name has its object's version, so
// it is never out of date. After its bytes it has the CRC-32 of each 64 KiB, which every read verifies: a block that
// the disk has damaged is fetched again. While one process fetches a block, others that want it wait. Blocks go
// when the cache has no room (core/cache_directory). When the disk fails, bytes are passed on and not kept: a problem
// of the cache is never an error.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <utility>

#include "core/cache_directory.hpp"

namespace lockstep::store {

class BlockCache {
 public:
  /// `cache`: the folder of the host's cache; empty: nothing is kept. `limit`: of the cache; see make_room().
  BlockCache(
      const std::string& cache, std::uint64_t limit,
      DiskSpace space = [](const std::string& of) { return std::filesystem::space(of); });

  /// Whether blocks are kept at all; if not, read what is needed, and no block.
  bool keeps() const { return !objects_.empty(); }

  using Fetch = std::function<void(std::span<std::byte> block)>;
  /// Fills `out` from byte `offset` of block `number`, of `bytes` bytes, of `object` (a name that is a file's). If it
  /// is not here, `fetch` fills all of it. Thread-safe; what `fetch` throws comes through. keeps() must hold.
  void read(const std::string& object, std::uint64_t number, std::uint64_t bytes, std::uint64_t offset,
            std::span<std::byte> out, const Fetch& fetch);

 private:
  void keep(const std::string& path, std::span<const std::byte> block);

  std::string cache_, objects_;
  std::uint64_t limit_;
  DiskSpace space_;
  std::atomic<std::uint64_t> kept_{0};  ///< bytes since room was made
};

/// In <LOCKSTEP_CACHE>/objects, with the limit LOCKSTEP_CACHE_LIMIT ("20GiB", "500MB", bytes). Throws
/// Error(configuration) for another text.
[[nodiscard]] BlockCache& block_cache();

}  // namespace lockstep::store
