// The common part of linear and conv by oneDNN: three calls, weights packed once per version of the parameters into the
// layout that oneDNN chooses for each direction, and the weight's gradient unpacked.
//
// In bfloat16 (KernelRequest::compute_type), float32 tensors are rounded first: x and dy in the workspace, the weight
// once per version. oneDNN adds in float32, and rounds y and dx once, y after the bias; the gradients of weight and
// bias are float32.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "device/cpu/dnnl_layer.hpp"
#include "lockstep/op.hpp"

namespace lockstep::ops {

/// Types and shapes are the request's; layouts are those of x and y in memory, and of the weight in the graph.
struct DnnlLayerShape {
  dnnl::memory::dims source, weight, destination;
  dnnl::memory::format_tag activations = dnnl::memory::format_tag::undef;
  dnnl::memory::format_tag plain_weight = dnnl::memory::format_tag::undef;
};

using DescribeDnnlLayer = std::function<device::DnnlDirections(const dnnl::engine&, const device::DnnlTensors&)>;

/// Whether oneDNN should compute these products natively in bfloat16: they are bfloat16, and `isa` can multiply it.
[[nodiscard]] bool multiplies_natively(const KernelRequest& request, dnnl::cpu_isa isa);

/// Makes the same layer in float32, without oneDNN.
using MakeExactLayer = std::function<std::unique_ptr<Kernel>(const KernelRequest&)>;

/// `request`: in float32, or one that multiplies_natively(). Returns null if oneDNN's code for bfloat16 is no faster
/// than float32's, or wrong in a trial, which is held against `make_exact`, or if that is empty against oneDNN's layer
/// in float32. For an empty batch, gradients are 0.
[[nodiscard]] std::unique_ptr<Kernel> make_dnnl_layer(const KernelRequest& request, const DnnlLayerShape& shape,
                                                      const DescribeDnnlLayer& describe,
                                                      const MakeExactLayer& make_exact = {});

}  // namespace lockstep::ops
