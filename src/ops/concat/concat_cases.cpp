#include "ops/op_case.hpp"

namespace lockstep::ops {

namespace {

/// Element by element: finds the input that holds each index of the output.
ReferenceResult concat_reference(const ReferenceCall& call) {
  const std::int64_t rank = call.inputs[0].shape.size();
  const std::int64_t given = call.attributes.integer("axis");
  const std::size_t axis = given < 0 ? given + rank : given;
  DoubleTensor y{call.inputs[0].shape, {}};
  for (std::size_t i = 1; i < call.inputs.size(); ++i) y.shape[axis] += call.inputs[i].shape[axis];
  for (std::int64_t e = 0; e < elements(y.shape); ++e) {
    std::int64_t inner = 1, along = y.shape[axis];
    for (std::size_t d = axis + 1; d < y.shape.size(); ++d) inner *= y.shape[d];
    std::int64_t position = e / inner % along;
    std::size_t source = 0;
    while (position >= call.inputs[source].shape[axis]) position -= call.inputs[source++].shape[axis];
    const std::int64_t at = (e / inner / along * call.inputs[source].shape[axis] + position) * inner + e % inner;
    y.values.push_back(call.inputs[source].values[at]);
  }
  return {{y}, {}};
}

TensorSpec of(Shape shape) {
  return {DType::f32, std::move(shape)};
}

}  // namespace

OpCases make_concat_cases() {
  const Attributes axis1({{"axis", std::int64_t{1}}});
  return {"concat",
          concat_reference,
          {
              {.name = "features", .attributes = {}, .inputs = {of({3, 5}), of({3, 2}), of({3, 1})}, .tolerance = 0},
              {.name = "rows", .attributes = axis1, .inputs = {of({2, 3, 4}), of({2, 5, 4})}, .tolerance = 0},
              {.name = "channels", .attributes = {}, .inputs = {of({2, 3, 2, 4}), of({2, 3, 2, 7})}, .tolerance = 0},
              {.name = "empty", .attributes = {}, .inputs = {of({0, 5}), of({0, 2})}, .tolerance = 0},
              {.name = "speed",
               .attributes = {},
               .inputs = {of({16, 16, 16, 32}), of({16, 16, 16, 32})},
               .benchmark = true},
          }};
}

}  // namespace lockstep::ops
