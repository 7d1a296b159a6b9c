// Counts this program's allocations by `operator new` and by `aligned_alloc`, which tensors use.
#pragma once

#include <cstddef>

namespace lockstep {

/// Allocations so far, on all threads. Those by oneDNN itself, through other calls, are not included.
struct Allocations {
  std::size_t all = 0;
  std::size_t large = 0;  ///< those of at least 1 KiB: oneDNN allocates small lists of arguments and taps during a call
  std::size_t bytes = 0;  ///< requested by all of them
};
[[nodiscard]] Allocations allocations();

}  // namespace lockstep
