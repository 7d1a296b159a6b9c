#include "ops/linear/linear_native_cpu.hpp"

#include "device/cpu/dnnl_layer.hpp"
#include "ops/dnnl_layer_cpu.hpp"
#include "ops/linear/linear_sizes.hpp"

namespace lockstep::ops {

std::unique_ptr<Kernel> make_linear_native(const KernelRequest& request) {
  using Tag = dnnl::memory::format_tag;
  const LinearSizes s = linear_sizes(request);
  const DnnlLayerShape shape{.source = {s.rows, s.in},
                             .weight = {s.out, s.in},
                             .destination = {s.rows, s.out},
                             .activations = Tag::ab,
                             .plain_weight = Tag::ab};
  return make_dnnl_layer(request, shape, [&](const dnnl::engine& engine, const device::DnnlTensors& tensors) {
    return describe(engine, device::InnerProductSpec{tensors, request.mode == Mode::training});
  });
}

}  // namespace lockstep::ops
