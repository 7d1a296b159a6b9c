// linear, linear_gelu and gelu_linear.
#include <cmath>

#include "ops/activation_case.hpp"

namespace lockstep::ops {

namespace {

DoubleTensor linear_reference(const ReferenceCall& call, const DoubleTensor& x) {
  const DoubleTensor& weight = call.parameters[0];
  const std::size_t out = weight.shape[0], in = weight.shape[1];
  const std::size_t rows = x.values.size() / in;
  DoubleTensor y{x.shape, std::vector<double>(rows * out)};
  y.shape.back() = weight.shape[0];
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t o = 0; o < out; ++o) {
      double sum = call.parameters.size() > 1 ? call.parameters[1].values[o] : 0;
      for (std::size_t i = 0; i < in; ++i) sum += x.values[row * in + i] * weight.values[o * in + i];
      y.values[row * out + o] = sum;
    }
  }
  return y;
}

Attributes features(std::int64_t count, bool bias = true) {
  return Attributes({{"features", count}, {"bias", bias}});
}

/// Both inputs, with y = gelu(pre): each element is a function of its index, since the inputs are filled separately.
void fill_pair(int index, Tensor& tensor) {
  float x = -3.1F;
  for (auto& value : tensor.as<float>()) {
    value = index == 0 ? static_cast<float>(gelu_reference(x)) : x;
    x = x > 3 ? x - 6.2F : x + 0.37F;
  }
}

/// Down to 2^-25: fp16 has no normal numbers below 2^-14, and none below 2^-24.
void fill_tiny(int index, Tensor& tensor) {
  if (index != 0) return;
  int exponent = -10;
  for (auto& value : tensor.as<float>()) {
    value = std::ldexp(value, exponent);
    exponent = exponent == -25 ? -10 : exponent - 1;
  }
}

OpCase pair_case(const std::string& name, const Attributes& attributes, const Shape& shape, bool benchmark = false) {
  return {.name = name,
          .attributes = attributes,
          .inputs = {{DType::f32, shape}, {DType::f32, shape}},
          .benchmark = benchmark,
          .fill = fill_pair};
}

}  // namespace

OpCases make_linear_cases() {
  return {"linear",
          [](const ReferenceCall& call) {
            return ReferenceResult{{linear_reference(call, call.inputs[0])}, {}};
          },
          {
              {.name = "odd", .attributes = features(5), .inputs = {{DType::f32, {3, 7}}}},
              {.name = "one", .attributes = features(1), .inputs = {{DType::f32, {1, 1}}}},
              {.name = "no_bias", .attributes = features(6, false), .inputs = {{DType::f32, {4, 3}}}},
              {.name = "vocabulary", .attributes = features(13, false), .inputs = {{DType::f32, {2, 5, 8}}}},
              {.name = "sequence", .attributes = features(9), .inputs = {{DType::f32, {2, 5, 4}}}},
              {.name = "blocks_of_rows", .attributes = features(5), .inputs = {{DType::f32, {2, 67, 3}}}},
              {.name = "tiny", .attributes = features(5, false), .inputs = {{DType::f32, {4, 9}}}, .fill = fill_tiny},
              {.name = "tiles", .attributes = features(72), .inputs = {{DType::f32, {67, 40}}}},
              {.name = "odd_tiles", .attributes = features(35), .inputs = {{DType::f32, {67, 59}}}},
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
              {.name = "vocabulary", .attributes = features(13, false), .inputs = {{DType::f32, {2, 5, 8}}}},
              {.name = "sequence", .attributes = features(24), .inputs = {{DType::f32, {2, 5, 6}}}},
              {.name = "tiles", .attributes = features(40), .inputs = {{DType::f32, {35, 72}}}},
              {.name = "blocks_of_rows", .attributes = features(5), .inputs = {{DType::f32, {2, 67, 3}}}},
              {.name = "empty", .attributes = features(5), .inputs = {{DType::f32, {0, 7}}}},
              {.name = "speed_gpt_up",
               .attributes = features(512),
               .inputs = {{DType::f32, {1, 64, 128}}},
               .benchmark = true},
          },
          CpuOrder::its_own};
}

// The reference computes gelu of pre itself, so that finite differences include it.
OpCases make_gelu_linear_cases() {
  return {"gelu_linear",
          [](const ReferenceCall& call) {
            DoubleTensor y = call.inputs[1];
            for (double& value : y.values) value = gelu_reference(value);
            return ReferenceResult{{linear_reference(call, y)}, {}};
          },
          {
              pair_case("odd", features(5), {3, 7}),
              pair_case("no_bias", features(6, false), {4, 3}),
              pair_case("sequence", features(6), {2, 5, 24}),
              pair_case("blocks_of_rows", features(5), {2, 67, 3}),
              pair_case("tiles", features(40), {67, 72}),
              pair_case("empty", features(5), {0, 7}),
              pair_case("speed_gpt_down", features(128), {1, 64, 512}, true),
          },
          CpuOrder::its_own};
}

}  // namespace lockstep::ops
