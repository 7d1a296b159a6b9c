// Counts what this program takes from the heap by `operator new` and by `aligned_alloc`, from which tensors come.
#pragma once

#include <cstddef>

namespace lockstep {

/// Allocations so far, on all threads. oneDNN's own, by other calls, are not among them.
struct Allocations {
  std::size_t all = 0;
  std::size_t large = 0;  ///< those of at least 1 KiB: oneDNN keeps lists of arguments and taps for the time of a call
};
[[nodiscard]] Allocations allocations();

}  // namespace lockstep
