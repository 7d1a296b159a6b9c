// softmax: y_k = e^x_k / sum_j e^x_j over the last dimension.
#include "lockstep/op.hpp"
#include "ops/elementwise.hpp"
#include "ops/registry.hpp"
#include "ops/rows.hpp"

namespace lockstep::ops {

std::unique_ptr<Kernel> make_softmax_cpu(const KernelRequest& request);

OpDef make_softmax() {
  OpDef op;
  op.name = "softmax";
  op.doc = "turns the last dimension into probabilities";
  op.backward_reads = {.inputs = false, .outputs = true};
  op.infer = [](const Attributes& attributes, std::span<const TensorSpec> inputs) {
    expect_rows("softmax", inputs[0]);
    return same_shape(attributes, inputs);
  };
  op.cost = elementwise_cost<20, 4>;
  op.kernels[DeviceKind::cpu] = make_softmax_cpu;
  return op;
}

}  // namespace lockstep::ops
