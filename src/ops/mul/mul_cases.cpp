#include "ops/op_case.hpp"

namespace lockstep::ops {

namespace {

ReferenceResult mul_reference(const ReferenceCall& call) {
  DoubleTensor y = call.inputs[0];
  for (std::size_t input = 1; input < call.inputs.size(); ++input) {
    for (std::size_t i = 0; i < y.values.size(); ++i) y.values[i] *= call.inputs[input].values[i];
  }
  return {{y}, {}};
}

}  // namespace

OpCases make_mul_cases() {
  return {"mul",
          mul_reference,
          {
              {.name = "two", .attributes = {}, .inputs = several(2, {3, 7})},
              {.name = "four", .attributes = {}, .inputs = several(4, {2, 5, 3})},
              {.name = "empty", .attributes = {}, .inputs = several(2, {0, 7})},
              {.name = "speed", .attributes = {}, .inputs = several(2, {1, 64, 512}), .benchmark = true},
          }};
}

}  // namespace lockstep::ops
