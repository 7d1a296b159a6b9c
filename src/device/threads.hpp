// Per-thread settings of the CPU library, to be made before a worker's first kernel; and what this process may use.
#pragma once

#include <cstdint>

namespace lockstep::device {

/// Makes oneDNN (OpenMP) use one thread for calls from this thread. The parallelism of a rank is over micro-batches;
/// oneDNN's weight gradient differs between one and two threads.
void use_one_thread();

/// Cores this process may use: the affinity mask, limited by the cgroup's CPU quota; at least 1.
[[nodiscard]] int available_cores();

/// Bytes that this process may still allocate: of the machine, and of its cgroup (v2) if that has a limit.
[[nodiscard]] std::int64_t available_memory();

}  // namespace lockstep::device
