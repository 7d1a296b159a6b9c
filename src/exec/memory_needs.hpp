// Checks, before the first step, whether a job fits on a GPU.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::exec {

struct MemoryNeed {
  std::string what;      ///< "activations"
  std::size_t each = 0;  ///< bytes
  int count = 1;
  std::string remedy = {};  ///< how the job can avoid it: "data.cache: memory"
};

[[nodiscard]] std::size_t bytes_of(const std::vector<MemoryNeed>& needs);

/// Throws Error(configuration) with a table of all needs if they exceed `free` bytes. `gpu` names the rank and its GPU;
/// `micro_batch_samples` and `workers` are settings that a user can change.
void require_memory(const std::string& gpu, std::size_t free, const std::vector<MemoryNeed>& needs,
                    std::int64_t micro_batch_samples, int workers);

}  // namespace lockstep::exec
