// A layer that multiplies by a weight, as oneDNN computes it: y from x, the gradient of x, and those of the weight and
// the bias. The interfaces of oneDNN 2 and 3 differ; CMake builds either dnnl_layer_v2.cpp or dnnl_layer_v3.cpp to
// match the library.
#pragma once

#include <dnnl.hpp>

namespace lockstep::device {

/// The tensors of such a layer. Weights have any layout: oneDNN chooses one for each direction.
struct DnnlTensors {
  dnnl::memory::desc source, weights, bias, destination;  ///< bias: empty if there is none; its gradient has the same
                                                          ///< description
  dnnl::memory::desc source_gradient, weight_gradient, destination_gradient;
};

/// The two backward directions are empty in inference.
struct DnnlDirections {
  dnnl::primitive_desc forward, source_gradient, weight_gradient;
};

struct ConvolutionSpec {
  DnnlTensors tensors;
  dnnl::memory::dims strides, dilations, padding_before, padding_after;  ///< oneDNN's dilations: 0 is dense
  bool training = true;
  bool transposed = false;  ///< the layer whose output is the image gradient of such a convolution
};

/// y [rows, out] = x [rows, in] * weight [out, in]^T + bias
struct InnerProductSpec {
  DnnlTensors tensors;
  bool training = true;
};

/// All use scratch memory of the caller. Throws dnnl::error if oneDNN has no such layer.
[[nodiscard]] DnnlDirections describe(const dnnl::engine& engine, const ConvolutionSpec& spec);
[[nodiscard]] DnnlDirections describe(const dnnl::engine& engine, const InnerProductSpec& spec);

}  // namespace lockstep::device
