// Per-thread settings of the CPU library, to be made before a worker's first kernel; and what this process may use.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace lockstep::device {

/// Makes oneDNN (OpenMP) use one thread for calls from this thread. The parallelism of a rank is over micro-batches;
/// oneDNN's weight gradient differs between one and two threads.
void use_one_thread();

/// Which cores this process may use, in a form that can be sent to other ranks.
struct CoreLimits {
  static constexpr std::size_t kCores = 1024;  ///< as many as cpu_set_t has
  std::array<std::uint64_t, kCores / 64> mask{};
  double quota = 0;  ///< of the cgroup, in cores; 0: none

  bool may_use(std::size_t core) const { return (mask[core / 64] >> core % 64 & 1U) != 0; }
  void allow(std::size_t core) { mask[core / 64] |= std::uint64_t{1} << core % 64; }
};
[[nodiscard]] CoreLimits core_limits();

/// Cores this process may use: the affinity mask, limited by the cgroup's CPU quota; at least 1.
[[nodiscard]] int available_cores();

/// Bytes that this process may still allocate: of the machine, and of its cgroup (v2) if that has a limit.
[[nodiscard]] std::int64_t available_memory();

}  // namespace lockstep::device
