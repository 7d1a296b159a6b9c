// What the kernels of scale share.
#pragma once

#include "lockstep/attributes.hpp"

namespace lockstep::ops {

/// 0 where the layer does not say it.
[[nodiscard]] inline float shift_of(const Attributes& attributes) {
  return attributes.has("shift") ? static_cast<float>(attributes.number("shift")) : 0.0F;
}

}  // namespace lockstep::ops
