#include "ops/op_case.hpp"

namespace lockstep::ops {

namespace {

ReferenceResult position_embedding_reference(const ReferenceCall& call) {
  DoubleTensor y = call.inputs[0];
  const std::size_t sample = y.shape[1] * y.shape[2];
  const std::size_t period = call.attributes.has("same") ? static_cast<std::size_t>(y.shape[2]) : sample;
  for (std::size_t i = 0; i < y.values.size(); ++i) y.values[i] += call.parameters[0].values[i % period];
  return {{y}, {}};
}

}  // namespace

OpCases make_position_embedding_cases() {
  const Attributes longer({{"length", std::int64_t{9}}}), same({{"length", std::int64_t{2}}, {"same", true}});
  return {"position_embedding",
          position_embedding_reference,
          {
              {.name = "full", .attributes = {}, .inputs = {{DType::f32, {3, 5, 7}}}},
              {.name = "shorter_sample", .attributes = longer, .inputs = {{DType::f32, {2, 4, 3}}}},
              {.name = "same", .attributes = same, .inputs = {{DType::f32, {3, 5, 7}}}},
              {.name = "empty", .attributes = {}, .inputs = {{DType::f32, {0, 5, 7}}}},
              {.name = "speed_gpt", .attributes = {}, .inputs = {{DType::f32, {1, 64, 128}}}, .benchmark = true},
          }};
}

}  // namespace lockstep::ops
