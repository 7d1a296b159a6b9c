// A loop over independent items on several threads, for indexing.
#pragma once

#include <cstddef>
#include <functional>

namespace lockstep::data {

/// Calls body(i) once for each i in 0 ... count - 1, in any order, and rethrows one of the errors it throws.
/// threads 0: as many as this process may use, at most 8.
void parallel_for(std::size_t count, int threads, const std::function<void(std::size_t)>& body);

}  // namespace lockstep::data
