// Where this host keeps what can be had again: indexes, unpacked archives, parts of objects.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep {

/// LOCKSTEP_CACHE, else $XDG_CACHE_HOME/lockstep, else ~/.cache/lockstep; empty if that is `none`, or nothing is set.
[[nodiscard]] std::string cache_directory();

/// LOCKSTEP_CACHE_LIMIT, the bytes that it may have: 20GiB, 500MiB or a number of bytes; 0 if it is not set. Throws
/// Error(configuration) for another text.
[[nodiscard]] std::uint64_t cache_limit();

}  // namespace lockstep
