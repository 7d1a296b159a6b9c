// A layer that multiplies by a weight, as oneDNN computes it: y of x, the gradient of x, and those of the weight and of
// the bias.
#pragma once

#include <dnnl.hpp>

namespace lockstep::device {

/// The tensors of such a layer. Weights are of any layout: oneDNN picks one for each direction.
struct DnnlTensors {
  dnnl::memory::desc source, weights, bias, destination;  ///< bias: empty where there is none; its gradient is as it is
  dnnl::memory::desc source_gradient, weight_gradient, destination_gradient;
};

/// Backward's two are empty in inference.
struct DnnlDirections {
  dnnl::primitive_desc forward, source_gradient, weight_gradient;
};

}  // namespace lockstep::device
