// conv as cuDNN sees it. Images lie there as ours do. The weight is given with channels last, as cuDNN's engines for
// such images want it; ours is [filters, channels / groups, height, width] and is copied into that order first.
#pragma once

#include "backend/gpu/convolution_layout.hpp"
#include "ops/conv/conv_shape.hpp"

namespace lockstep::ops {

inline backend::ConvolutionLayout convolution_layout(const ConvShape& s) {
  const WindowAxis &h = s.window.height, &w = s.window.width;
  return {backend::channels_last(s.image.batch, s.image.channels, s.image.height, s.image.width),
          backend::channels_last(s.filters, s.image.channels / s.groups, h.kernel, w.kernel),
          backend::channels_last(s.image.batch, s.filters, s.image.out_height, s.image.out_width),
          {h.before, w.before},
          {h.after, w.after},
          {h.stride, w.stride},
          {h.dilation, w.dilation}};
}

/// Whether a weight with channels last lies in memory as ours does.
inline bool weight_needs_no_copy(const ConvShape& s) {
  return s.image.channels == s.groups || s.window.height.kernel * s.window.width.kernel == 1;
}

}  // namespace lockstep::ops
