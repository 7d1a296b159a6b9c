#include "ops/activation_case.hpp"
#include "ops/linear/linear_reference.hpp"

namespace lockstep::ops {

OpCases make_linear_gelu_cases() {
  return {"linear_gelu",
          [](const ReferenceCall& call) {
            const DoubleTensor pre = linear_reference(call, call.inputs[0]);
            DoubleTensor y = pre;
            for (double& value : y.values) value = gelu_reference(value);
            return ReferenceResult{{pre, y}, {}};
          },
          {
              {.name = "odd", .attributes = features(5), .inputs = {{DType::f32, {3, 7}}}},
              {.name = "no_bias", .attributes = features(6, false), .inputs = {{DType::f32, {4, 3}}}},
              {.name = "sequence", .attributes = features(24), .inputs = {{DType::f32, {2, 5, 6}}}},
              {.name = "blocks_of_rows", .attributes = features(5), .inputs = {{DType::f32, {2, 67, 3}}}},
              {.name = "empty", .attributes = features(5), .inputs = {{DType::f32, {0, 7}}}},
              {.name = "speed_gpt_up",
               .attributes = features(512),
               .inputs = {{DType::f32, {1, 64, 128}}},
               .benchmark = true},
          },
          CpuOrder::its_own};
}

}  // namespace lockstep::ops
