// oneDNN's convolution. Its interface differs between oneDNN 2 and 3; CMake builds the one of dnnl_convolution_v2.cpp
// and dnnl_convolution_v3.cpp that fits the library.
#pragma once

#include "device/cpu/dnnl_layer.hpp"

namespace lockstep::device {

struct ConvolutionSpec {
  DnnlTensors tensors;
  dnnl::memory::dims strides, dilations, padding_before, padding_after;  ///< oneDNN's dilation: 0 is dense
  bool training = true;
};

/// All with scratch memory of the caller's. Throws dnnl::error where oneDNN has no such convolution.
[[nodiscard]] DnnlDirections describe(const dnnl::engine& engine, const ConvolutionSpec& spec);

}  // namespace lockstep::device
