#include <cmath>

#include "ops/op_case.hpp"

namespace lockstep::ops {

namespace {

void normalize_row(const double* x, const ReferenceCall& call, double* y, std::size_t n) {
  double mean = 0, variance = 0;
  for (std::size_t i = 0; i < n; ++i) mean += x[i] / n;
  for (std::size_t i = 0; i < n; ++i) variance += (x[i] - mean) * (x[i] - mean) / n;
  for (std::size_t i = 0; i < n; ++i) {
    const double z = (x[i] - mean) / std::sqrt(variance + call.attributes.number("epsilon"));
    y[i] = z * call.parameters[0].values[i] + (call.parameters.size() > 1 ? call.parameters[1].values[i] : 0);
  }
}

ReferenceResult layer_norm_reference(const ReferenceCall& call) {
  const DoubleTensor& x = call.inputs[0];
  DoubleTensor y = x;
  const std::size_t n = x.shape.back();
  for (std::size_t at = 0; at < x.values.size(); at += n) normalize_row(&x.values[at], call, &y.values[at], n);
  return {{y}, {}};
}

}  // namespace

OpCases make_layer_norm_cases() {
  const Attributes no_bias({{"bias", false}}), epsilon({{"epsilon", 0.1}});
  return {"layer_norm",
          layer_norm_reference,
          {
              {.name = "odd", .attributes = {}, .inputs = {{DType::f32, {3, 37}}}},
              {.name = "sequence", .attributes = epsilon, .inputs = {{DType::f32, {2, 3, 16}}}},
              {.name = "no_bias", .attributes = no_bias, .inputs = {{DType::f32, {4, 7}}}},
              {.name = "packs_no_bias", .attributes = no_bias, .inputs = {{DType::f32, {4, 24}}}},
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
