#include <cmath>

#include "ops/activation_case.hpp"
#include "ops/op_case.hpp"

namespace lockstep::ops {

namespace {

ReferenceResult softmax_reference(const ReferenceCall& call) {
  DoubleTensor y = call.inputs[0];
  const std::size_t n = y.shape.back();
  for (std::size_t at = 0; at < y.values.size(); at += n) {
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) sum += std::exp(y.values[at + i]);
    for (std::size_t i = 0; i < n; ++i) y.values[at + i] = std::exp(y.values[at + i]) / sum;
  }
  return {{y}, {}};
}

}  // namespace

OpCases make_softmax_cases() {
  return {"softmax",
          softmax_reference,
          {
              {.name = "odd", .attributes = {}, .inputs = {{DType::f32, {3, 37}}}},
              {.name = "sequence", .attributes = {}, .inputs = {{DType::f32, {2, 3, 16}}}},
              {.name = "wide", .attributes = {}, .inputs = {{DType::f32, {3, 65}}}, .fill = fill_wide},
              {.name = "one", .attributes = {}, .inputs = {{DType::f32, {4, 1}}}},
              {.name = "empty", .attributes = {}, .inputs = {{DType::f32, {0, 7}}}},
              {.name = "speed", .attributes = {}, .inputs = {{DType::f32, {128, 1000}}}, .benchmark = true},
          }};
}

}  // namespace lockstep::ops
