#include "ops/activation_case.hpp"
#include "ops/linear/linear_reference.hpp"

namespace lockstep::ops {

namespace {

/// y = gelu(pre) in both inputs: a function of the element, as each is filled alone.
void fill_pair(int index, Tensor& tensor) {
  float x = -3.1F;
  for (auto& value : tensor.as<float>()) {
    value = index == 0 ? static_cast<float>(gelu_reference(x)) : x;
    x = x > 3 ? x - 6.2F : x + 0.37F;
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

// The reference takes gelu of pre itself, so that finite differences find the way through it.
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
              pair_case("empty", features(5), {0, 7}),
              pair_case("speed_gpt_down", features(128), {1, 64, 512}, true),
          },
          CpuOrder::its_own};
}

}  // namespace lockstep::ops
