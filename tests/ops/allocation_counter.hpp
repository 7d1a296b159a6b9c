// Counts what this program takes from the heap by `operator new`.
#pragma once

#include <cstddef>

namespace lockstep::ops {

/// Allocations of at least 1 KiB so far, on all threads. Smaller ones are left out: oneDNN keeps lists of arguments
/// and taps for the time of a call. Always 0 under a sanitizer, which has its own heap.
[[nodiscard]] std::size_t allocations();

}  // namespace lockstep::ops
