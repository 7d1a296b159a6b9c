#include "ops/op_case.hpp"

namespace lockstep::ops {

namespace {

ReferenceResult class_token_reference(const ReferenceCall& call) {
  const DoubleTensor& x = call.inputs[0];
  DoubleTensor y{{x.shape[0], x.shape[1] + 1, x.shape[2]}, {}};
  const std::int64_t sample = x.shape[1] * x.shape[2];
  for (std::int64_t b = 0; b < x.shape[0]; ++b) {
    for (const double value : call.parameters[0].values) y.values.push_back(value);
    for (std::int64_t i = 0; i < sample; ++i) y.values.push_back(x.values[b * sample + i]);
  }
  return {{y}, {}};
}

}  // namespace

OpCases make_class_token_cases() {
  return {"class_token",
          class_token_reference,
          {
              {.name = "odd", .attributes = {}, .inputs = {{DType::f32, {3, 5, 7}}}},
              {.name = "one_token", .attributes = Attributes({{"std", 0.5}}), .inputs = {{DType::f32, {2, 1, 3}}}},
              {.name = "empty", .attributes = {}, .inputs = {{DType::f32, {0, 5, 7}}}},
              {.name = "speed_vit", .attributes = {}, .inputs = {{DType::f32, {8, 196, 384}}}, .benchmark = true},
          }};
}

}  // namespace lockstep::ops
