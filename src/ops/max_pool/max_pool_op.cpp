// max_pool: the largest pixel of each window, by channel; padding is never the largest.
#include <fmt/format.h>

#include "lockstep/error.hpp"
#include "ops/pool_shape.hpp"
#include "ops/registry.hpp"

namespace lockstep::ops {

std::unique_ptr<Kernel> make_max_pool_cpu(const KernelRequest& request);

namespace {

Signature infer_max_pool(const Attributes& attributes, std::span<const TensorSpec> inputs) {
  const PoolShape s = pool_shape("max_pool", attributes, inputs[0]);
  const std::int64_t taps = s.window.height.kernel * s.window.width.kernel;
  if (taps > 256) {  // the winner's place is kept in a byte
    throw Error(ExitCode::configuration,
                fmt::format("max_pool: expected a kernel of at most 256 pixels, found {}", taps));
  }
  const Shape out{s.image.batch, s.image.out_height, s.image.out_width, s.image.channels};
  Signature signature;
  signature.outputs.push_back({DType::f32, out});
  signature.saved.push_back({DType::u8, out});
  return signature;
}

Cost max_pool_cost(const Attributes& attributes, std::span<const TensorSpec> inputs, const Signature& signature) {
  const PoolShape s = pool_shape("max_pool", attributes, inputs[0]);
  const auto n = static_cast<double>(signature.outputs[0].elements());
  return {n * static_cast<double>(s.window.height.kernel * s.window.width.kernel), n};
}

}  // namespace

OpDef make_max_pool() {
  OpDef op;
  op.name = "max_pool";
  op.doc = "the largest pixel of each window, by channel";
  op.attributes = pool_attributes();
  op.shorthand = "kernel";
  op.infer = infer_max_pool;
  op.cost = max_pool_cost;
  op.kernels[DeviceKind::cpu] = make_max_pool_cpu;
  return op;
}

}  // namespace lockstep::ops
