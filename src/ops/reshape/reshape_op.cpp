// reshape: a view of each sample in another shape; `shape` does not include the batch dimension. flatten: a view of
// each sample as one row, [b, h, w, c] to [b, h * w * c].
#include <fmt/format.h>

#include "lockstep/error.hpp"
#include "lockstep/op.hpp"
#include "ops/onnx_scope.hpp"

namespace lockstep::ops {

namespace {

[[noreturn]] void fail(const Shape& wanted, const Shape& found) {
  throw Error(ExitCode::configuration,
              fmt::format("reshape: expected a shape with as many elements as a sample of {} (the batch dimension left "
                          "out, at most one -1), found {}",
                          to_string(found), to_string(wanted)));
}

Signature infer_reshape(const Attributes& attributes, std::span<const TensorSpec> inputs) {
  const Shape& shape = inputs[0].shape;
  const Shape wanted = attributes.integers("shape");
  if (shape.empty()) fail(wanted, shape);
  const std::int64_t size = elements(Shape(shape.begin() + 1, shape.end()));
  std::int64_t known = 1;
  int open = 0;
  for (const auto extent : wanted) {
    if (extent == -1)
      ++open;
    else
      known *= extent;
  }
  if (open > 1 || known <= 0 || (open == 1 ? size % known != 0 : size != known)) fail(wanted, shape);
  Signature signature;
  signature.outputs.push_back({inputs[0].dtype, {shape[0]}});
  for (const auto extent : wanted) signature.outputs[0].shape.push_back(extent == -1 ? size / known : extent);
  return signature;
}

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

OpDef make_reshape() {
  OpDef op;
  op.name = "reshape";
  op.doc = "reshapes each sample";
  op.attributes = {{.name = "shape",
                    .kind = AttributeKind::integers,
                    .doc = "the new shape without the batch; one -1 is inferred",
                    .minimum = -1}};
  op.shorthand = "shape";
  op.view = true;
  op.infer = infer_reshape;
  op.cost = [](const Attributes&, std::span<const TensorSpec>, const Signature&) { return Cost{}; };
  return op;
}

OpDef make_flatten() {
  OpDef op;
  op.name = "flatten";
  op.doc = "each sample as one row";
  op.view = true;
  op.infer = infer_flatten;
  op.cost = [](const Attributes&, std::span<const TensorSpec>, const Signature&) { return Cost{}; };
  return op;
}

void reshape_to_onnx(OnnxScope& scope) {
  std::vector<std::int64_t> shape = scope.output_shape();
  shape.front() = 0;
  const std::string x = scope.input();
  scope.result(scope.reshape(x, std::move(shape)));
}

void flatten_to_onnx(OnnxScope& scope) {
  reshape_to_onnx(scope);
}

}  // namespace lockstep::ops
