// What linear and conv share where oneDNN computes them: three calls, weights packed into the layout that oneDNN picks
// for each direction, once per version of the parameters, and the weight's gradient unpacked.
//
// In bfloat16 (KernelRequest::compute_type) what stands in float32 is rounded first: x and dy in the workspace, the
// weight once for each version. oneDNN adds in float32, and rounds y and dx once, y after the bias; the gradients of
// weight and bias are float32.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "device/cpu/dnnl_layer.hpp"
#include "lockstep/op.hpp"

namespace lockstep::ops {

/// Types and shapes are the request's; layouts are x's and y's, as they lie in memory, and the weight's as the graph
/// has it.
struct DnnlLayerShape {
  dnnl::memory::dims source, weight, destination;
  dnnl::memory::format_tag activations = dnnl::memory::format_tag::undef;
  dnnl::memory::format_tag plain_weight = dnnl::memory::format_tag::undef;
};

using DescribeDnnlLayer = std::function<device::DnnlDirections(const dnnl::engine&, const device::DnnlTensors&)>;

/// Whether oneDNN is to compute these products in bfloat16 itself: they are of bfloat16, and `isa` multiplies it.
[[nodiscard]] bool multiplies_natively(const KernelRequest& request, dnnl::cpu_isa isa);

/// `request`: of float32, or as multiplies_natively() says. The kernel is null where oneDNN has nothing for bfloat16
/// but code that is no faster than float32's. A batch of nothing has gradients of 0.
[[nodiscard]] std::unique_ptr<Kernel> make_dnnl_layer(const KernelRequest& request, const DnnlLayerShape& shape,
                                                      const DescribeDnnlLayer& describe);

}  // namespace lockstep::ops
