// oneDNN's convolution descriptors. Their interface differs between oneDNN 2 and 3; CMake builds the one of
// dnnl_convolution_v2.cpp and dnnl_convolution_v3.cpp that fits the library.
#pragma once

#include <dnnl.hpp>

namespace lockstep::backend {

struct ConvolutionSpec {
  dnnl::memory::desc source, weights, bias, destination;                 ///< bias: empty where there is none
  dnnl::memory::dims strides, dilations, padding_before, padding_after;  ///< oneDNN's dilation: 0 is dense
  bool training = true;
};

using ConvolutionForward = dnnl::convolution_forward::primitive_desc;
using ConvolutionBackwardData = dnnl::convolution_backward_data::primitive_desc;
using ConvolutionBackwardWeights = dnnl::convolution_backward_weights::primitive_desc;

/// All with scratch memory of the caller's.
[[nodiscard]] ConvolutionForward describe_forward(const dnnl::engine& engine, const ConvolutionSpec& spec);
[[nodiscard]] ConvolutionBackwardData describe_backward_data(const dnnl::engine& engine, const ConvolutionSpec& spec,
                                                             const ConvolutionForward& forward);
[[nodiscard]] ConvolutionBackwardWeights describe_backward_weights(const dnnl::engine& engine,
                                                                   const ConvolutionSpec& spec,
                                                                   const ConvolutionForward& forward);

}  // namespace lockstep::backend
