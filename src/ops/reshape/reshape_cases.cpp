#include "ops/op_case.hpp"

namespace lockstep::ops {

namespace {

ReferenceResult reshape_reference(const ReferenceCall& call) {
  const DoubleTensor& x = call.inputs[0];
  Shape shape = call.attributes.integers("shape");
  std::int64_t size = 1, known = 1;
  for (std::size_t i = 1; i < x.shape.size(); ++i) size *= x.shape[i];
  for (const auto extent : shape) known *= extent == -1 ? 1 : extent;
  for (auto& extent : shape) extent = extent == -1 ? size / known : extent;
  shape.insert(shape.begin(), x.shape[0]);
  return {{{shape, x.values}}, {}};
}

Attributes to(Shape shape) {
  return Attributes({{"shape", std::move(shape)}});
}

ReferenceResult flatten_reference(const ReferenceCall& call) {
  const Shape& shape = call.inputs[0].shape;
  std::int64_t features = 1;
  for (std::size_t i = 1; i < shape.size(); ++i) features *= shape[i];
  return {{{{shape[0], features}, call.inputs[0].values}}, {}};
}

}  // namespace

OpCases make_reshape_cases() {
  return {"reshape",
          reshape_reference,
          {
              {.name = "split", .attributes = to({3, -1}), .inputs = {{DType::f32, {2, 5, 9}}}},
              {.name = "given", .attributes = to({5, 1, 9}), .inputs = {{DType::f32, {2, 45}}}},
              {.name = "empty", .attributes = to({-1}), .inputs = {{DType::f32, {0, 5, 9}}}},
          }};
}

OpCases make_flatten_cases() {
  return {"flatten",
          flatten_reference,
          {
              {.name = "image", .attributes = {}, .inputs = {{DType::f32, {2, 3, 5, 4}}}},
              {.name = "scalar_samples", .attributes = {}, .inputs = {{DType::f32, {3}}}},
              {.name = "empty", .attributes = {}, .inputs = {{DType::f32, {0, 3, 5}}}},
          }};
}

}  // namespace lockstep::ops
