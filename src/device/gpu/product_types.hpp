// The number types of a library's product. Sums are always in fp32, and the result is rounded once.
#pragma once

#include "lockstep/tensor.hpp"

namespace lockstep::device {

struct ProductTypes {
  DType factors = DType::f32;  ///< of both factors
  DType result = DType::f32;
  bool tf32 = false;  ///< factors in fp32 may be rounded to TF32 (8 bits of exponent, 10 of fraction)
};

}  // namespace lockstep::device
