// gelu by tanh, in double.
#pragma once

#include <cmath>

namespace lockstep::ops {

inline double gelu_reference(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
}

}  // namespace lockstep::ops
