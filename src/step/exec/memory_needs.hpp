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

/// Of so many free bytes, what is left for libraries, graphs and kernels, whose memory is not known before they run. An
/// estimate, not measured on a GPU.
[[nodiscard]] constexpr std::size_t bytes_of_libraries(std::size_t free) {
  return free / 64;
}

/// Throws Error(configuration) with a table of all needs if they exceed `free` bytes. `gpu` names the rank and its GPU;
/// `micro_batch_samples` and `workers` are settings that a user can change.
void require_memory(const std::string& gpu, std::size_t free, const std::vector<MemoryNeed>& needs,
                    std::int64_t micro_batch_samples, int workers);

}  // namespace lockstep::exec
