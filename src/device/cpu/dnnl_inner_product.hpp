// oneDNN's inner product: y [rows, out] = x [rows, in] * weight [out, in]^T + bias. Its interface differs between
// oneDNN 2 and 3; CMake builds the one of dnnl_inner_product_v2.cpp and dnnl_inner_product_v3.cpp that fits.
#pragma once

#include "device/cpu/dnnl_layer.hpp"

namespace lockstep::device {

struct InnerProductSpec {
  DnnlTensors tensors;
  bool training = true;
};

/// All with scratch memory of the caller's. Throws dnnl::error where oneDNN has no such product.
[[nodiscard]] DnnlDirections describe(const dnnl::engine& engine, const InnerProductSpec& spec);

}  // namespace lockstep::device
