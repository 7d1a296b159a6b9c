// Elementwise loops that several ops share. The result may overwrite an operand.
#pragma once

#include <cstdint>

namespace lockstep::ops {

/// y = a * b
void multiply(const float* a, const float* b, float* y, std::int64_t n);

}  // namespace lockstep::ops
