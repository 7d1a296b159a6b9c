// flatten: a view of each sample as one row, [b, h, w, c] to [b, h * w * c].
#include <fmt/format.h>

#include "lockstep/error.hpp"
#include "lockstep/op.hpp"
#include "ops/registry.hpp"

namespace lockstep::ops {

namespace {

Signature infer_flatten(const Attributes& /*attributes*/, std::span<const TensorSpec> inputs) {
  const Shape& shape = inputs[0].shape;
  if (shape.empty())
    throw Error(ExitCode::configuration, "flatten: expected an input with a batch dimension, found []");
  std::int64_t features = 1;
  for (std::size_t i = 1; i < shape.size(); ++i) features *= shape[i];
  Signature signature;
  signature.outputs.push_back({inputs[0].dtype, {shape[0], features}});
  return signature;
}

}  // namespace

OpDef make_flatten() {
  OpDef op;
  op.name = "flatten";
  op.doc = "each sample as one row of features";
  op.view = true;
  op.infer = infer_flatten;
  op.cost = [](const Attributes&, std::span<const TensorSpec>, const Signature&) { return Cost{}; };
  return op;
}

}  // namespace lockstep::ops
