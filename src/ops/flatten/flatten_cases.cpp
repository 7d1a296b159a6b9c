#include "ops/op_case.hpp"

namespace lockstep::ops {

namespace {

ReferenceResult flatten_reference(const ReferenceCall& call) {
  const Shape& shape = call.inputs[0].shape;
  std::int64_t features = 1;
  for (std::size_t i = 1; i < shape.size(); ++i) features *= shape[i];
  return {{{{shape[0], features}, call.inputs[0].values}}, {}};
}

}  // namespace

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
