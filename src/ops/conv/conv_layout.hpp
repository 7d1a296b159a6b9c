// conv as cuDNN sees it. Images have our layout. The weight is passed with channels last, as cuDNN's engines for such
// images need it, and as lowering stores it.
#pragma once

#include "core/filter_sizes.hpp"
#include "device/gpu/convolution_layout.hpp"
#include "ops/conv/conv_shape.hpp"

namespace lockstep::ops {

inline device::ConvolutionLayout convolution_layout(const ConvShape& s) {
  const WindowAxis &h = s.window.height, &w = s.window.width;
  return {device::channels_last(s.image.batch, s.image.channels, s.image.height, s.image.width),
          device::channels_last(s.filters, s.image.channels / s.groups, h.kernel, w.kernel),
          device::channels_last(s.image.batch, s.filters, s.image.out_height, s.image.out_width),
          {h.before, w.before},
          {h.after, w.after},
          {h.stride, w.stride},
          {h.dilation, w.dilation}};
}

inline FilterSizes filter_of(const ConvShape& s) {
  return {s.image.channels / s.groups, s.window.height.kernel * s.window.width.kernel};
}

/// Whether the weight's layout is already that one; else it is copied before, and its gradient after.
inline bool weight_needs_no_copy(const ConvShape& s) {
  return s.channels_last || !filter_of(s).orders_differ();
}

}  // namespace lockstep::ops
