// Casts between float32 and a narrow type (core/low_precision.hpp) of whole tensors.
#pragma once

#include <cstdint>

namespace lockstep::device {

enum class Cast : std::uint8_t {
  widen,   ///< from the narrow type to float32, which has every value of it
  narrow,  ///< from float32 to the nearest value of the narrow type
  round,   ///< from float32 to float32: the nearest value that the narrow type has
};

}  // namespace lockstep::device
