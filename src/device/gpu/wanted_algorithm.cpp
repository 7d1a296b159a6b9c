#include "device/gpu/wanted_algorithm.hpp"

#include <fmt/format.h>

namespace lockstep::device {

Error algorithm_not_there(const GpuPlace& place, const WantedAlgorithm& wanted) {
  return Error(ExitCode::usage,
               fmt::format("rank {} on {}: '{}': expected the algorithm that rank 0 chose ({}), found that the library "
                           "does not propose it here; use one kind of GPU and one version of the libraries, or set "
                           "exact: preferred",
                           place.rank, place.host, wanted.node, wanted.name));
}

}  // namespace lockstep::device
