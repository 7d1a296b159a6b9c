#include "ops/op_case.hpp"

namespace lockstep::ops {

namespace {

ReferenceResult reference(const ReferenceCall& call) {
  const DoubleTensor& x = call.inputs[0];
  const DoubleTensor& weight = call.parameters[0];
  const auto out = static_cast<std::size_t>(weight.shape[0]), in = static_cast<std::size_t>(weight.shape[1]);
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
  return {{y}, {}};
}

Attributes features(std::int64_t count, bool bias = true) {
  return Attributes({{"features", count}, {"bias", bias}});
}

}  // namespace

OpCases make_linear_cases() {
  return {"linear",
          reference,
          {
              {.name = "odd", .attributes = features(5), .inputs = {{DType::f32, {3, 7}}}},
              {.name = "one", .attributes = features(1), .inputs = {{DType::f32, {1, 1}}}},
              {.name = "no_bias", .attributes = features(6, false), .inputs = {{DType::f32, {4, 3}}}},
              {.name = "sequence", .attributes = features(9), .inputs = {{DType::f32, {2, 5, 4}}}},
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
