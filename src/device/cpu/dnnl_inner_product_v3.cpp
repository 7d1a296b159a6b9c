// oneDNN 3: the primitive descriptor at once.
#include "device/cpu/dnnl_call.hpp"
#include "device/cpu/dnnl_inner_product.hpp"

namespace lockstep::device {

DnnlDirections describe(const dnnl::engine& engine, const InnerProductSpec& spec) {
  using Forward = dnnl::inner_product_forward::primitive_desc;
  using BackwardData = dnnl::inner_product_backward_data::primitive_desc;
  using BackwardWeights = dnnl::inner_product_backward_weights::primitive_desc;
  const DnnlTensors& t = spec.tensors;
  const auto attributes = user_scratchpad();
  const auto kind = spec.training ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
  // An empty description of the bias means none here.
  const Forward forward(engine, kind, t.source, t.weights, t.bias, t.destination, attributes);
  if (!spec.training) return {forward, {}, {}};
  return {forward, BackwardData(engine, t.source_gradient, t.weights, t.destination_gradient, forward, attributes),
          BackwardWeights(engine, t.source, t.weight_gradient, t.bias, t.destination_gradient, forward, attributes)};
}

}  // namespace lockstep::device
