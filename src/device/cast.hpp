// Casts of whole tensors between float32 and a low-precision type (core/low_precision.hpp).
#pragma once

#include <cstdint>

namespace lockstep::device {

enum class Cast : std::uint8_t {
  upcast,    ///< from the low-precision type to float32; exact
  downcast,  ///< from float32 to the nearest value of the low-precision type
  round,     ///< from float32 to float32: to the nearest value of the low-precision type
};

}  // namespace lockstep::device
