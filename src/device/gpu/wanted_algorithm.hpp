// The algorithm that rank 0 chose for a product, which all ranks must use.
#pragma once

#include <string>

#include "device/gpu/gpu_place.hpp"

namespace lockstep::device {

struct WantedAlgorithm {
  std::string node;  ///< the node that the product belongs to
  std::string name;  ///< empty: any
};

/// Error(usage) for an algorithm that the library does not propose on this rank.
[[nodiscard]] Error algorithm_not_there(const GpuPlace& place, const WantedAlgorithm& wanted);

}  // namespace lockstep::device
