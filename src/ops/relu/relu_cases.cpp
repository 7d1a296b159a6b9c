#include "ops/op_case.hpp"

namespace lockstep::ops {

namespace {

ReferenceResult relu_reference(const ReferenceCall& call) {
  DoubleTensor y = call.inputs[0];
  for (double& value : y.values) value = value > 0 ? value : 0;
  return {{y}, {}};
}

}  // namespace

OpCases make_relu_cases() {
  return {"relu",
          relu_reference,
          {
              {.name = "odd", .attributes = {}, .inputs = {{DType::f32, {3, 7}}}},
              {.name = "empty", .attributes = {}, .inputs = {{DType::f32, {0, 7}}}},
              {.name = "image", .attributes = {}, .inputs = {{DType::f32, {2, 5, 3, 4}}}},
              {.name = "speed", .attributes = {}, .inputs = {{DType::f32, {16, 32, 32, 16}}}, .benchmark = true},
          }};
}

}  // namespace lockstep::ops
