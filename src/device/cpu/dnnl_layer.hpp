// A layer that multiplies by a weight, as oneDNN computes it: y of x, the gradient of x, and those of the weight and of
// the bias. The interface differs between oneDNN 2 and 3; CMake builds the one of dnnl_layer_v2.cpp and
// dnnl_layer_v3.cpp that fits the library.
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

struct ConvolutionSpec {
  DnnlTensors tensors;
  dnnl::memory::dims strides, dilations, padding_before, padding_after;  ///< oneDNN's dilation: 0 is dense
  bool training = true;
};

/// y [rows, out] = x [rows, in] * weight [out, in]^T + bias
struct InnerProductSpec {
  DnnlTensors tensors;
  bool training = true;
};

/// All with scratch memory of the caller's. Throws dnnl::error where oneDNN has no such layer.
[[nodiscard]] DnnlDirections describe(const dnnl::engine& engine, const ConvolutionSpec& spec);
[[nodiscard]] DnnlDirections describe(const dnnl::engine& engine, const InnerProductSpec& spec);

}  // namespace lockstep::device
