#include <array>
#include <cmath>

#include "ops/op_case.hpp"

namespace lockstep::ops {

namespace {

ReferenceResult rms_norm_reference(const ReferenceCall& call) {
  DoubleTensor y = call.inputs[0];
  const std::size_t n = y.shape.back();
  for (std::size_t at = 0; at < y.values.size(); at += n) {
    double square = 0;
    for (std::size_t i = 0; i < n; ++i) square += y.values[at + i] * y.values[at + i] / n;
    const double scale = 1 / std::sqrt(square + call.attributes.number("epsilon"));
    for (std::size_t i = 0; i < n; ++i) y.values[at + i] *= scale * call.parameters[0].values[i];
  }
  return {{y}, {}};
}

/// Multiples of fp16's least number, 2^-24: up to 1,023 of it they are not normal there.
void fill_subnormal(int /*index*/, Tensor& tensor) {
  constexpr std::array kMultiples = {1, -2, 5, 1023, -100, 511, -512, 1000, -1023, 1024, 2047};
  std::size_t i = 0;
  for (auto& value : tensor.as<float>())
    value = std::ldexp(static_cast<float>(kMultiples.at(i++ % kMultiples.size())), -24);
}

}  // namespace

OpCases make_rms_norm_cases() {
  return {"rms_norm",
          rms_norm_reference,
          {
              {.name = "odd", .attributes = {}, .inputs = {{DType::f32, {3, 37}}}},
              {.name = "sequence", .attributes = Attributes({{"epsilon", 0.1}}), .inputs = {{DType::f32, {2, 3, 16}}}},
              {.name = "subnormal",
               .attributes = Attributes({{"epsilon", 1e-6}}),
               .inputs = {{DType::f32, {3, 37}}},
               .fill = fill_subnormal},
              {.name = "empty", .attributes = {}, .inputs = {{DType::f32, {0, 7}}}},
              {.name = "blocks_of_rows", .attributes = {}, .inputs = {{DType::f32, {2, 67, 37}}}},
              {.name = "wide", .attributes = {}, .inputs = {{DType::f32, {3, 515}}}},
              // Rows of whole packs: some, and more than lanes read at once, in blocks of which one is not full.
              {.name = "packs", .attributes = {}, .inputs = {{DType::f32, {5, 40}}}},
              {.name = "wide_packs", .attributes = {}, .inputs = {{DType::f32, {1, 21, 1064}}}},
              {.name = "speed_gpt", .attributes = {}, .inputs = {{DType::f32, {1, 64, 128}}}, .benchmark = true},
              {.name = "speed_gpt2", .attributes = {}, .inputs = {{DType::f32, {1, 1024, 768}}}, .benchmark = true},
          }};
}

}  // namespace lockstep::ops
