// The first process of a container: what the kernel expects of process 1, and nothing else.
//
// Processes whose parent died become its children, and remain zombies unless it reaps them. A signal for which it has
// no handler is ignored. So a separate process does only this: it reaps processes, passes signals on to the one process
// that works, and ends as that one does.
#pragma once

#include <optional>

namespace lockstep::launch {

/// Splits the program in two. In the process that works: returns nullopt at once. In the other one, which is process 1
/// in a container and elsewhere adopts the orphans below it: returns the worker's exit code (128 + signal), once it has
/// ended and no process below is left. Call it before any thread is started. Throws Error(infrastructure).
[[nodiscard]] std::optional<int> become_init();

}  // namespace lockstep::launch
