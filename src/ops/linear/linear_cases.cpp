#include "ops/linear/linear_reference.hpp"

namespace lockstep::ops {

OpCases make_linear_cases() {
  return {"linear",
          [](const ReferenceCall& call) {
            return ReferenceResult{{linear_reference(call, call.inputs[0])}, {}};
          },
          {
              {.name = "odd", .attributes = features(5), .inputs = {{DType::f32, {3, 7}}}},
              {.name = "one", .attributes = features(1), .inputs = {{DType::f32, {1, 1}}}},
              {.name = "no_bias", .attributes = features(6, false), .inputs = {{DType::f32, {4, 3}}}},
              {.name = "sequence", .attributes = features(9), .inputs = {{DType::f32, {2, 5, 4}}}},
              {.name = "blocks_of_rows", .attributes = features(5), .inputs = {{DType::f32, {2, 67, 3}}}},
              {.name = "empty", .attributes = features(5), .inputs = {{DType::f32, {0, 7}}}},
              {.name = "speed_gpt_up",
               .attributes = features(512),
               .inputs = {{DType::f32, {1, 64, 128}}},
               .benchmark = true},
              {.name = "speed_gpt_down",
               .attributes = features(128),
               .inputs = {{DType::f32, {1, 64, 512}}},
               .benchmark = true},
              {.name = "speed_batch",
               .attributes = features(512),
               .inputs = {{DType::f32, {12, 64, 128}}},
               .benchmark = true},
          },
          CpuOrder::its_own};
}

}  // namespace lockstep::ops
