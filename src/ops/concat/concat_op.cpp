// concat: its inputs side by side along one dimension, which is not the batch.
#include <fmt/format.h>

#include "lockstep/error.hpp"
#include "lockstep/op.hpp"
#include "ops/registry.hpp"

namespace lockstep::ops {

std::unique_ptr<Kernel> make_concat_cpu(const KernelRequest& request);

namespace {

Signature infer_concat(const Attributes& attributes, std::span<const TensorSpec> inputs) {
  const Shape& first = inputs[0].shape;
  const auto rank = static_cast<std::int64_t>(first.size());
  const std::int64_t given = attributes.integer("axis"), axis = given < 0 ? given + rank : given;
  if (axis < 1 || axis >= rank) {
    throw Error(ExitCode::configuration,
                fmt::format("concat: expected an axis from 1 to {}, or from the end -1 to {}, found {}", rank - 1,
                            1 - rank, given));
  }
  Signature signature;
  signature.outputs.push_back({inputs[0].dtype, first});
  std::int64_t& extent = signature.outputs[0].shape[static_cast<std::size_t>(axis)];
  for (const auto& input : inputs.subspan(1)) {
    Shape shape = input.shape;
    if (shape.size() == first.size()) shape[static_cast<std::size_t>(axis)] = first[static_cast<std::size_t>(axis)];
    if (shape != first || input.dtype != DType::f32 || inputs[0].dtype != DType::f32) {
      throw Error(
          ExitCode::configuration,
          fmt::format("concat: expected inputs of f32 that differ in dimension {} only, found {} of {} and {} of {}",
                      axis, to_string(first), name_of(inputs[0].dtype), to_string(input.shape), name_of(input.dtype)));
    }
    extent += input.shape[static_cast<std::size_t>(axis)];
  }
  return signature;
}

}  // namespace

OpDef make_concat() {
  OpDef op;
  op.name = "concat";
  op.doc = "its inputs side by side along one dimension";
  op.attributes = {{.name = "axis",
                    .kind = AttributeKind::integer,
                    .doc = "the dimension, with the batch as 0; negative: from the end",
                    .default_value = std::int64_t{-1}}};
  op.shorthand = "axis";
  op.min_inputs = 2;
  op.max_inputs = -1;
  op.infer = infer_concat;
  op.cost = [](const Attributes&, std::span<const TensorSpec>, const Signature&) { return Cost{}; };
  op.kernels[DeviceKind::cpu] = make_concat_cpu;
  return op;
}

}  // namespace lockstep::ops
