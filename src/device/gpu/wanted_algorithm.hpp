// The algorithm that rank 0 chose for a product, so that all ranks compute it alike.
#pragma once

#include <string>

#include "device/gpu/gpu_place.hpp"

namespace lockstep::device {

struct WantedAlgorithm {
  std::string node;  ///< whose product it is
  std::string name;  ///< empty: any
};

/// The library does not propose it here: Error(usage).
[[nodiscard]] Error algorithm_not_there(const GpuPlace& place, const WantedAlgorithm& wanted);

}  // namespace lockstep::device
