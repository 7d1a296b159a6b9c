// oneDNN 2: an operation descriptor first, then the primitive descriptor.
#include "device/cpu/dnnl_call.hpp"
#include "device/cpu/dnnl_inner_product.hpp"

namespace lockstep::device {

DnnlDirections describe(const dnnl::engine& engine, const InnerProductSpec& spec) {
  using Forward = dnnl::inner_product_forward;
  using BackwardData = dnnl::inner_product_backward_data;
  using BackwardWeights = dnnl::inner_product_backward_weights;
  const DnnlTensors& t = spec.tensors;
  const auto attributes = user_scratchpad();
  const auto kind = spec.training ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
  // A bias of size 0 means none here.
  const Forward::primitive_desc forward(Forward::desc(kind, t.source, t.weights, t.bias, t.destination), attributes,
                                        engine);
  if (!spec.training) return {forward, {}, {}};
  const BackwardData::desc data(t.source_gradient, t.weights, t.destination_gradient);
  const BackwardWeights::desc weights(t.source, t.weight_gradient, t.bias, t.destination_gradient);
  return {forward, BackwardData::primitive_desc(data, attributes, engine, forward),
          BackwardWeights::primitive_desc(weights, attributes, engine, forward)};
}

}  // namespace lockstep::device
