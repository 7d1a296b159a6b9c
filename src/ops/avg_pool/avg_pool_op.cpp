// avg_pool: the mean of each window, by channel.
#include "ops/pool_shape.hpp"
#include "ops/registry.hpp"

namespace lockstep::ops {

std::unique_ptr<Kernel> make_avg_pool_cpu(const KernelRequest& request);

namespace {

Signature infer_avg_pool(const Attributes& attributes, std::span<const TensorSpec> inputs) {
  const PoolShape s = pool_shape("avg_pool", attributes, inputs[0]);
  Signature signature;
  signature.outputs.push_back({DType::f32, {s.image.batch, s.image.out_height, s.image.out_width, s.image.channels}});
  return signature;
}

Cost avg_pool_cost(const Attributes& attributes, std::span<const TensorSpec> inputs, const Signature& signature) {
  const PoolShape s = pool_shape("avg_pool", attributes, inputs[0]);
  const double taps = static_cast<double>(s.window.height.kernel * s.window.width.kernel);
  const double flops = taps * static_cast<double>(signature.outputs[0].elements());
  return {flops, flops};
}

}  // namespace

OpDef make_avg_pool() {
  OpDef op;
  op.name = "avg_pool";
  op.doc = "the mean of each window, by channel";
  op.attributes = pool_attributes();
  op.attributes.push_back({.name = "count_include_pad",
                           .kind = AttributeKind::boolean,
                           .doc = "the mean counts the padding as pixels of value 0",
                           .default_value = Attribute(true)});
  op.shorthand = "kernel";
  op.infer = infer_avg_pool;
  op.cost = avg_pool_cost;
  op.kernels[DeviceKind::cpu] = make_avg_pool_cpu;
  return op;
}

}  // namespace lockstep::ops
