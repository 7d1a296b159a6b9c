// oneDNN 2: an operation descriptor first, then the primitive descriptor.
#include "backend/cpu/dnnl_call.hpp"
#include "backend/cpu/dnnl_convolution.hpp"

namespace lockstep::backend {

namespace {
constexpr auto kDirect = dnnl::algorithm::convolution_direct;
}

ConvolutionForward describe_forward(const dnnl::engine& engine, const ConvolutionSpec& s) {
  const auto kind = s.training ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
  // A bias of size 0 means none here.
  return {{kind, kDirect, s.source, s.weights, s.bias, s.destination, s.strides, s.dilations, s.padding_before,
           s.padding_after},
          user_scratchpad(),
          engine};
}

ConvolutionBackwardData describe_backward_data(const dnnl::engine& engine, const ConvolutionSpec& s,
                                               const ConvolutionForward& forward) {
  return {{kDirect, s.source, s.weights, s.destination, s.strides, s.dilations, s.padding_before, s.padding_after},
          user_scratchpad(),
          engine,
          forward};
}

ConvolutionBackwardWeights describe_backward_weights(const dnnl::engine& engine, const ConvolutionSpec& s,
                                                     const ConvolutionForward& forward) {
  return {
      {kDirect, s.source, s.weights, s.bias, s.destination, s.strides, s.dilations, s.padding_before, s.padding_after},
      user_scratchpad(),
      engine,
      forward};
}

}  // namespace lockstep::backend
