// The first process of a container: what the kernel expects of process 1, and nothing else.
//
// Processes whose parent died become its children, and stay as zombies unless it asks how they ended. A signal that it
// has no handler for does nothing. So one process does only this: it reaps whoever ends, passes signals on to the one
// process that works, and ends as that one does.
#pragma once

#include <optional>

namespace lockstep::launch {

/// Splits the program in two. In the process that works: nullopt, at once. In the other one, which is process 1 in a
/// container and elsewhere takes over the orphans below it: the worker's exit code (128 + signal), once it has ended
/// and nothing below is left. To be called before any thread is started. Throws Error(infrastructure).
[[nodiscard]] std::optional<int> become_init();

}  // namespace lockstep::launch
