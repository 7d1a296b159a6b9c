// The only addition of vectors, for gradients and activations. It is elementwise, so its bits do not depend on the
// instruction set.
#pragma once

#include <cstdint>

namespace lockstep::device {

/// sum[i] = left[i] + right[i]; `sum` may be one of the operands.
void add(const float* left, const float* right, float* sum, std::int64_t n);

}  // namespace lockstep::device
