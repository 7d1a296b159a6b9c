// Whether a job fits on a GPU, said before its first step.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::exec {

struct MemoryNeed {
  std::string what;      ///< "activations"
  std::size_t each = 0;  ///< bytes
  int count = 1;
  std::string remedy = {};  ///< what in the job makes it needless: "data.cache: memory"
};

[[nodiscard]] std::size_t bytes_of(const std::vector<MemoryNeed>& needs);

/// Throws Error(configuration) with a table of what needs how much where it is more than `free` bytes. `gpu` names the
/// rank and its GPU; `shard_samples` and `workers` are what a user can change.
void require_memory(const std::string& gpu, std::size_t free, const std::vector<MemoryNeed>& needs,
                    std::int64_t shard_samples, int workers);

}  // namespace lockstep::exec
