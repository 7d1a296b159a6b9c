// Shared by conv's shape rule and its kernels.
#pragma once

#include "ops/window.hpp"

namespace lockstep::ops {

struct ConvShape {
  Window window;
  WindowShape image;
  std::int64_t filters = 0, groups = 1;
  bool bias = true;
  bool channels_last = false;  ///< the layout of the weight and its gradient
};

/// Throws Error(configuration) if the input does not fit the attributes.
[[nodiscard]] ConvShape conv_shape(const Attributes& attributes, const TensorSpec& image);

}  // namespace lockstep::ops
