// While one process makes an entry of a cache on this host, others that want it wait for that one: not in silence, and
// not for ever.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "core/locked_file.hpp"

namespace lockstep {

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

}  // namespace lockstep
