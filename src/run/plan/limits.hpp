// How much memory a rank may use, and the error for a run that needs more.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "run/plan/memory.hpp"

namespace lockstep::plan {

/// A limit that the system sets for a process.
struct MemoryLimit {
  std::int64_t bytes = 0;         ///< 0: none
  std::string what;               ///< "the limit of its cgroup"
  bool counts_untouched = false;  ///< memory counts when it is mapped, even if it is never written
};

/// The smallest of its cgroup's limit, RLIMIT_AS and RLIMIT_DATA; none if all are above the host's memory.
[[nodiscard]] MemoryLimit limit_of_process();
/// Memory of this host, or the limit of its cgroup if that is less.
[[nodiscard]] std::int64_t memory_of_host();

/// The memory that a rank needs at least, and may have.
struct RankRoom {
  std::int64_t least = 0;  ///< RankMemory::least()
  std::int64_t limit = 0;  ///< 0: none
};
/// The first rank that needs more than it may have; -1: none.
[[nodiscard]] int first_without_room(const std::vector<RankRoom>& ranks);

/// Of for_each_placement(): the placement with the least memory on the rank that needs most.
struct Nearest {
  std::string overrides, text;
  std::int64_t least = 0;  ///< on the rank that needs most
};
[[nodiscard]] Nearest least_memory(const MemorySetup& setup, const RankSetup& ranks, bool may_divide);

/// What to try where no placement has room: "try more ranks, more micro-batches of fewer samples, or a smaller model",
/// or, where one layer of a micro-batch (its weights, what it reads and what it makes) is larger than the limit, which
/// and how large it is.
[[nodiscard]] std::string remedy(const Graph& graph, std::int64_t limit);

/// "expected 1.2 GiB ..., found ..." with the table of `memory` and advice. `who`: "rank 1 on host a".
[[nodiscard]] std::string refusal(const std::string& who, const RankRoom& room, const std::string& limit,
                                  const PlacedModel& placed, const std::vector<RankMemory>& memory,
                                  const Nearest& nearest);

}  // namespace lockstep::plan
