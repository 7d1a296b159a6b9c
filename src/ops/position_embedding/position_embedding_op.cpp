// position_embedding: y[b, t] = x[b, t] + weight[t]; weight [length, width].
#include <fmt/format.h>

#include "lockstep/error.hpp"
#include "lockstep/op.hpp"
#include "ops/elementwise.hpp"
#include "ops/registry.hpp"

namespace lockstep::ops {

std::unique_ptr<Kernel> make_position_embedding_cpu(const KernelRequest& request);

namespace {

Signature infer_position_embedding(const Attributes& attributes, std::span<const TensorSpec> inputs) {
  const TensorSpec& x = inputs[0];
  if (x.dtype != DType::f32 || x.shape.size() != 3) {
    throw Error(ExitCode::configuration,
                fmt::format("position_embedding: expected an input [batch, time, width] of f32, found {} of {}",
                            to_string(x.shape), name_of(x.dtype)));
  }
  const std::int64_t length = attributes.has("length") ? attributes.integer("length") : x.shape[1];
  if (x.shape[1] > length) {
    throw Error(
        ExitCode::configuration,
        fmt::format("position_embedding: expected at most {} positions, found {}; raise `length`", length, x.shape[1]));
  }
  Signature signature = same_shape(attributes, inputs);
  signature.parameters.push_back({"weight", {length, x.shape[2]}, Initializer::normal(attributes.number("std"))});
  return signature;
}

}  // namespace

OpDef make_position_embedding() {
  OpDef op;
  op.name = "position_embedding";
  op.doc = "adds a learned vector for each position";
  op.attributes = {{.name = "length",
                    .kind = AttributeKind::integer,
                    .doc = "most positions of a sample; default: those of the input",
                    .optional = true,
                    .minimum = 1},
                   {.name = "std",
                    .kind = AttributeKind::number,
                    .doc = "standard deviation of the first values",
                    .default_value = 0.02,
                    .minimum = 0}};
  op.shorthand = "length";
  op.infer = infer_position_embedding;
  op.cost = elementwise_cost<1, 1>;
  op.kernels[DeviceKind::cpu] = make_position_embedding_cpu;
  return op;
}

}  // namespace lockstep::ops
