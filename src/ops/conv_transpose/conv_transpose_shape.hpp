// conv_transpose as the convolution of which it is the image gradient: its output is that one's image, its input that
// one's output.
#pragma once

#include "ops/conv/conv_shape.hpp"

namespace lockstep::ops {

/// `image` is the output of the layer, `filters` the channels of its input. Throws Error(configuration) if the input
/// does not fit the attributes.
[[nodiscard]] ConvShape conv_transpose_shape(const Attributes& attributes, const TensorSpec& input);

}  // namespace lockstep::ops
