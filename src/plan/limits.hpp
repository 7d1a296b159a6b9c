// How much memory there is for a rank, and the refusal of a run that cannot have what it needs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/memory.hpp"

namespace lockstep::plan {

/// A limit that the system sets a process.
struct MemoryLimit {
  std::int64_t bytes = 0;         ///< 0: there is none
  std::string what;               ///< "the limit of its cgroup"
  bool counts_untouched = false;  ///< memory counts from when it is mapped, whether it is ever written or not
};

/// The least of: its cgroup's, RLIMIT_AS, RLIMIT_DATA; none where all are above the host's memory.
[[nodiscard]] MemoryLimit limit_of_process();
/// Of this host, or of its cgroup where that has less.
[[nodiscard]] std::int64_t memory_of_host();

/// What a rank needs at least, and may have.
struct RankRoom {
  std::int64_t least = 0;  ///< RankMemory::least()
  std::int64_t limit = 0;  ///< 0: none
};
/// The first rank that needs more than it may have; -1: none.
[[nodiscard]] int first_without_room(const std::vector<RankRoom>& ranks);

/// Of choices_of() as many parts as there are ranks: the placement whose rank with the most memory has the least.
struct Nearest {
  std::string overrides, text;
  std::int64_t least = 0;  ///< of the rank that needs most
};
[[nodiscard]] Nearest least_memory(const MemorySetup& setup, const RankSetup& ranks, bool may_divide);

/// "expected 1.2 GiB ..., found ..." with the table of `memory` and what to try. `who`: "rank 1 on host a".
[[nodiscard]] std::string refusal(const std::string& who, const RankRoom& room, const std::string& limit,
                                  const PlacedModel& placed, const std::vector<RankMemory>& memory,
                                  const Nearest& nearest);

}  // namespace lockstep::plan
