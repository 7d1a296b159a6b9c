// global_pool: one value per channel from a whole image; [batch, ..., channels] becomes [batch, channels].
#include <fmt/format.h>

#include <limits>

#include "lockstep/error.hpp"
#include "lockstep/op.hpp"
#include "ops/registry.hpp"

namespace lockstep::ops {

std::unique_ptr<Kernel> make_global_pool_cpu(const KernelRequest& request);

namespace {

bool is_maximum(const Attributes& attributes) {
  return attributes.text("kind") == "max";
}

Signature infer_global_pool(const Attributes& attributes, std::span<const TensorSpec> inputs) {
  const TensorSpec& x = inputs[0];
  std::int64_t pixels = 1;
  for (std::size_t i = 1; i + 1 < x.shape.size(); ++i) pixels *= x.shape[i];
  if (x.dtype != DType::f32 || x.shape.size() < 3 || pixels == 0) {
    throw Error(ExitCode::configuration,
                fmt::format("global_pool: expected images [batch, height, width, channels] of f32, found {} of {}",
                            to_string(x.shape), name_of(x.dtype)));
  }
  if (pixels > std::numeric_limits<std::int32_t>::max()) {  // the winning pixel's number has 32 bits
    throw Error(ExitCode::configuration,
                fmt::format("global_pool: expected images of fewer than 2^31 pixels, found {}", pixels));
  }
  const Shape out{x.shape.front(), x.shape.back()};
  Signature signature;
  signature.outputs.push_back({DType::f32, out});
  if (is_maximum(attributes)) signature.saved.push_back({DType::i32, out});  // the winning pixel
  return signature;
}

Cost global_pool_cost(const Attributes& /*attributes*/, std::span<const TensorSpec> inputs,
                      const Signature& /*signature*/) {
  const auto n = static_cast<double>(inputs[0].elements());
  return {n, n};
}

}  // namespace

OpDef make_global_pool() {
  OpDef op;
  op.name = "global_pool";
  op.doc = "the mean (or the largest) of all pixels, by channel";
  op.attributes = {{.name = "kind",
                    .kind = AttributeKind::text,
                    .doc = "average or max",
                    .default_value = Attribute(std::string("average")),
                    .choices = {"average", "max"}}};
  op.shorthand = "kind";
  op.infer = infer_global_pool;
  op.cost = global_pool_cost;
  op.kernels[DeviceKind::cpu] = make_global_pool_cpu;
  return op;
}

}  // namespace lockstep::ops
