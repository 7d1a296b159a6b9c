// Where this host keeps what can be had again: indexes, unpacked archives, parts of objects.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "core/files.hpp"

namespace lockstep {

/// LOCKSTEP_CACHE, else $XDG_CACHE_HOME/lockstep, else ~/.cache/lockstep; empty if that is `none`, or nothing is set.
[[nodiscard]] std::string cache_directory();

/// LOCKSTEP_CACHE_LIMIT, the bytes that it may have: 20GiB, 500MiB or a number of bytes; 0 if it is not set. Throws
/// Error(configuration) for another text.
[[nodiscard]] std::uint64_t cache_limit();

// While one process makes an entry of a cache on this host, others that want it wait for that one: not in silence, and
// not for ever.

struct CacheWait {
  std::chrono::milliseconds announce{5'000};  ///< after this, a warning on stderr names the lock and its holder
  std::chrono::milliseconds limit{300'000};   ///< after this, the entry is made here, too; 0: at once
};

struct CacheLock {
  /// On <entry>.lock. Null: another process has it, or the cache has no locks; each makes its own then, which is safe,
  /// since NewFile puts it into place.
  std::unique_ptr<LockedFile> file;
  bool waited = false;  ///< for another process, which may have made the entry
};

/// Locks the making of `entry`, a path in a folder that is there. Never throws for the file system's sake.
[[nodiscard]] CacheLock lock_to_make(const std::string& entry, const CacheWait& wait = {});

/// The holder has made the entry, or given up: removes the lock's file.
void unlock_made(CacheLock& lock);

// Room in the cache of this host: one limit for all that it holds, indexes, unpacked copies and parts of objects.

/// What the disk of a folder has; throws std::filesystem::filesystem_error.
using DiskSpace = std::function<std::filesystem::space_info(const std::string& folder)>;

/// Parts of objects, in the cache.
inline constexpr const char* kObjectsFolder = "objects";
/// What the names of other entries begin with; all else that lies in the cache's folder is not touched.
inline constexpr const char* kIndexPrefix = "index-";
inline constexpr const char* kUnpackedPrefix = "unpacked-";

/// Removes what was used longest ago, until the cache has no more than `limit` bytes (0: as many as there are) and its
/// disk a twentieth of its space free. Call it when `added` was added, which stays. Never throws for the file system's
/// sake.
void make_room(
    const std::string& cache, std::uint64_t limit, const std::string& added,
    const DiskSpace& space = [](const std::string& of) { return std::filesystem::space(of); });

/// An entry was used just now.
void note_use(const std::string& entry);

}  // namespace lockstep
