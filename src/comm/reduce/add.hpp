// The two additions of gradients. Elementwise, so their bits do not depend on the instruction set.
#pragma once

#include <cstdint>

namespace lockstep::comm {

/// left[i] = left[i] + right[i]; the arrays do not overlap.
void accumulate(float* left, const float* right, std::int64_t n);

/// out[i] = left[i] + right[i]; the arrays do not overlap.
void add(float* out, const float* left, const float* right, std::int64_t n);

}  // namespace lockstep::comm
