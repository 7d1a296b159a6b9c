// embedding: row `id` of weight [vocabulary, width] for each id of the input, [b, ...] i32 to [b, ..., width].
// An id outside of the vocabulary is Error(data).
#include <fmt/format.h>

#include "lockstep/error.hpp"
#include "lockstep/op.hpp"
#include "ops/initialize.hpp"
#include "ops/registry.hpp"

namespace lockstep::ops {

std::unique_ptr<Kernel> make_embedding_cpu(const KernelRequest& request);

namespace {

Signature infer_embedding(const Attributes& attributes, std::span<const TensorSpec> inputs) {
  if (inputs[0].dtype != DType::i32 || inputs[0].shape.empty()) {
    throw Error(ExitCode::configuration, fmt::format("embedding: expected an input [batch, ...] of i32, found {} of {}",
                                                     to_string(inputs[0].shape), name_of(inputs[0].dtype)));
  }
  const std::int64_t vocabulary = attributes.integer("vocabulary"), width = attributes.integer("width");
  Signature signature;
  signature.outputs.push_back({DType::f32, inputs[0].shape});
  signature.outputs[0].shape.push_back(width);
  signature.parameters.push_back({"weight", {vocabulary, width}, Initializer::normal(attributes.number("std"))});
  return signature;
}

}  // namespace

OpDef make_embedding() {
  OpDef op;
  op.name = "embedding";
  op.doc = "a learned vector for each id";
  op.attributes = {
      {.name = "vocabulary", .kind = AttributeKind::integer, .doc = "number of different ids", .minimum = 1},
      {.name = "width", .kind = AttributeKind::integer, .doc = "size of a vector", .minimum = 1},
      {.name = "std",
       .kind = AttributeKind::number,
       .doc = "standard deviation of the first values",
       .default_value = 0.02,
       .minimum = 0}};
  op.constant_inputs = {0};
  op.backward_reads = {.inputs = true, .outputs = false};
  op.infer = infer_embedding;
  op.cost = [](const Attributes&, std::span<const TensorSpec>, const Signature& signature) {
    return Cost{0, static_cast<double>(signature.outputs[0].elements())};
  };
  op.kernels[DeviceKind::cpu] = make_embedding_cpu;
  return op;
}

}  // namespace lockstep::ops
