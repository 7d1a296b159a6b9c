// oneDNN 2: an operation descriptor first, then the primitive descriptor.
#include "device/cpu/dnnl_call.hpp"
#include "device/cpu/dnnl_layer.hpp"

namespace lockstep::device {

namespace {

struct Convolution {
  using Forward = dnnl::convolution_forward::primitive_desc;
  using BackwardData = dnnl::convolution_backward_data::primitive_desc;
  using BackwardWeights = dnnl::convolution_backward_weights::primitive_desc;
  static constexpr auto kDirect = dnnl::algorithm::convolution_direct;
};

struct Deconvolution {
  using Forward = dnnl::deconvolution_forward::primitive_desc;
  using BackwardData = dnnl::deconvolution_backward_data::primitive_desc;
  using BackwardWeights = dnnl::deconvolution_backward_weights::primitive_desc;
  static constexpr auto kDirect = dnnl::algorithm::deconvolution_direct;
};

template <class Kind>
typename Kind::Forward describe_forward(const dnnl::engine& engine, const ConvolutionSpec& s) {
  const auto kind = s.training ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
  const DnnlTensors& t = s.tensors;
  // A bias of size 0 means none here.
  return {{kind, Kind::kDirect, t.source, t.weights, t.bias, t.destination, s.strides, s.dilations, s.padding_before,
           s.padding_after},
          user_scratchpad(),
          engine};
}

template <class Kind>
typename Kind::BackwardData describe_backward_data(const dnnl::engine& engine, const ConvolutionSpec& s,
                                                   const typename Kind::Forward& forward) {
  const DnnlTensors& t = s.tensors;
  return {{Kind::kDirect, t.source_gradient, t.weights, t.destination_gradient, s.strides, s.dilations,
           s.padding_before, s.padding_after},
          user_scratchpad(),
          engine,
          forward};
}

template <class Kind>
typename Kind::BackwardWeights describe_backward_weights(const dnnl::engine& engine, const ConvolutionSpec& s,
                                                         const typename Kind::Forward& forward) {
  const DnnlTensors& t = s.tensors;
  return {{Kind::kDirect, t.source, t.weight_gradient, t.bias, t.destination_gradient, s.strides, s.dilations,
           s.padding_before, s.padding_after},
          user_scratchpad(),
          engine,
          forward};
}

template <class Kind>
DnnlDirections describe_convolution(const dnnl::engine& engine, const ConvolutionSpec& spec) {
  const typename Kind::Forward forward = describe_forward<Kind>(engine, spec);
  if (!spec.training) return {forward, {}, {}};
  return {forward, describe_backward_data<Kind>(engine, spec, forward),
          describe_backward_weights<Kind>(engine, spec, forward)};
}

}  // namespace

DnnlDirections describe(const dnnl::engine& engine, const ConvolutionSpec& spec) {
  return spec.transposed ? describe_convolution<Deconvolution>(engine, spec)
                         : describe_convolution<Convolution>(engine, spec);
}

DnnlDirections describe(const dnnl::engine& engine, const InnerProductSpec& spec) {
  using ProductForward = dnnl::inner_product_forward;
  using ProductBackwardData = dnnl::inner_product_backward_data;
  using ProductBackwardWeights = dnnl::inner_product_backward_weights;
  const DnnlTensors& t = spec.tensors;
  const auto attributes = user_scratchpad();
  const auto kind = spec.training ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
  // A bias of size 0 means none here.
  const ProductForward::primitive_desc forward(ProductForward::desc(kind, t.source, t.weights, t.bias, t.destination),
                                               attributes, engine);
  if (!spec.training) return {forward, {}, {}};
  const ProductBackwardData::desc data(t.source_gradient, t.weights, t.destination_gradient);
  const ProductBackwardWeights::desc weights(t.source, t.weight_gradient, t.bias, t.destination_gradient);
  return {forward, ProductBackwardData::primitive_desc(data, attributes, engine, forward),
          ProductBackwardWeights::primitive_desc(weights, attributes, engine, forward)};
}

}  // namespace lockstep::device
