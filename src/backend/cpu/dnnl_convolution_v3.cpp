// oneDNN 3: the primitive descriptor at once.
#include "backend/cpu/dnnl_call.hpp"
#include "backend/cpu/dnnl_convolution.hpp"

namespace lockstep::backend {

namespace {
constexpr auto kDirect = dnnl::algorithm::convolution_direct;
}

ConvolutionForward describe_forward(const dnnl::engine& engine, const ConvolutionSpec& s) {
  const auto kind = s.training ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
  // An empty description of the bias means none here.
  return {engine,        kind,      kDirect,     s.source,         s.weights,       s.bias,
          s.destination, s.strides, s.dilations, s.padding_before, s.padding_after, user_scratchpad()};
}

ConvolutionBackwardData describe_backward_data(const dnnl::engine& engine, const ConvolutionSpec& s,
                                               const ConvolutionForward& forward) {
  return {engine,      kDirect,          s.source,        s.weights, s.destination,    s.strides,
          s.dilations, s.padding_before, s.padding_after, forward,   user_scratchpad()};
}

ConvolutionBackwardWeights describe_backward_weights(const dnnl::engine& engine, const ConvolutionSpec& s,
                                                     const ConvolutionForward& forward) {
  return {engine,    kDirect,     s.source,         s.weights,       s.bias,  s.destination,
          s.strides, s.dilations, s.padding_before, s.padding_after, forward, user_scratchpad()};
}

}  // namespace lockstep::backend
