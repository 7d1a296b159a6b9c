// transpose: a sample's dimensions in another order. `order` names the input's dimensions, with the batch as 0, which
// stays in front: [2, 1] makes [b, T, C] into [b, C, T].
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "lockstep/error.hpp"
#include "lockstep/op.hpp"
#include "ops/registry.hpp"

namespace lockstep::ops {

std::unique_ptr<Kernel> make_transpose_cpu(const KernelRequest& request);

namespace {

Signature infer_transpose(const Attributes& attributes, std::span<const TensorSpec> inputs) {
  const Shape& shape = inputs[0].shape;
  const auto order = attributes.integers("order");
  auto sorted = order;
  std::sort(sorted.begin(), sorted.end());
  bool complete = sorted.size() + 1 == shape.size() && inputs[0].dtype == DType::f32;
  for (std::size_t i = 0; complete && i < sorted.size(); ++i) complete = sorted[i] == static_cast<std::int64_t>(i + 1);
  if (!complete) {
    throw Error(
        ExitCode::configuration,
        fmt::format("transpose: expected an order of the dimensions 1 to {} of an input {} of f32, found [{}] and {}",
                    static_cast<std::int64_t>(shape.size()) - 1, to_string(shape), fmt::join(order, ", "),
                    name_of(inputs[0].dtype)));
  }
  Signature signature;
  signature.outputs.push_back({DType::f32, {shape[0]}});
  for (const auto dimension : order) signature.outputs[0].shape.push_back(shape[static_cast<std::size_t>(dimension)]);
  return signature;
}

}  // namespace

OpDef make_transpose() {
  OpDef op;
  op.name = "transpose";
  op.doc = "a sample's dimensions in another order";
  op.attributes = {{.name = "order",
                    .kind = AttributeKind::integers,
                    .doc = "the input's dimensions in their new order, without the batch, which is 0: [2, 1]",
                    .minimum = 1}};
  op.shorthand = "order";
  op.infer = infer_transpose;
  op.cost = [](const Attributes&, std::span<const TensorSpec>, const Signature&) { return Cost{}; };
  op.kernels[DeviceKind::cpu] = make_transpose_cpu;
  return op;
}

}  // namespace lockstep::ops
