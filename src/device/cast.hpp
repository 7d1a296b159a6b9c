// Casts between float32 and a low-precision type (core/low_precision.hpp) of whole tensors.
#pragma once

#include <cstdint>

namespace lockstep::device {

enum class Cast : std::uint8_t {
  upcast,    ///< from the low-precision type to float32, which has every value of it
  downcast,  ///< from float32 to the nearest value of the low-precision type
  round,     ///< from float32 to float32: the nearest value that the low-precision type has
};

}  // namespace lockstep::device
