// What a GPU's memory check leaves free for libraries, graphs and kernels: what they allocate is not known before they
// run.
#pragma once

#include <cstddef>

namespace lockstep::exec {

/// Of so many free bytes; an estimate, not measured on a GPU.
[[nodiscard]] constexpr std::size_t bytes_of_libraries(std::size_t free) {
  return free / 64;
}

}  // namespace lockstep::exec
