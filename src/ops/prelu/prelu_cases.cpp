#include "ops/op_case.hpp"

namespace lockstep::ops {

namespace {

ReferenceResult prelu_reference(const ReferenceCall& call) {
  DoubleTensor y = call.inputs[0];
  const auto& slopes = call.parameters[0].values;
  const std::size_t channels = y.shape.back();
  for (std::size_t i = 0; i < y.values.size(); ++i) {
    double& value = y.values[i];
    if (value <= 0) value *= slopes[slopes.size() == 1 ? 0 : i % channels];
  }
  return {{y}, {}};
}

/// Nothing that is so near to the bend at 0 that finite differences cross it.
void fill_beside_zero(int /*index*/, Tensor& tensor) {
  int n = 0;
  for (auto& value : tensor.as<float>()) value = ((n += 7) % 41) / 10.0F - 2.05F;
}

}  // namespace

OpCases make_prelu_cases() {
  const Attributes shared({{"shared", true}}), steep({{"init", 0.6}});
  const auto of = [](const std::string& name, const Attributes& attributes, Shape shape) {
    return OpCase{
        .name = name, .attributes = attributes, .inputs = {{DType::f32, std::move(shape)}}, .fill = fill_beside_zero};
  };
  std::vector<OpCase> cases = {
      of("odd", {}, {3, 37}),  of("image", steep, {2, 9, 8, 3}),   of("shared", shared, {2, 11, 5}),
      of("empty", {}, {0, 7}), of("shared_empty", shared, {0, 7}), of("speed", {}, {16, 32, 32, 16})};
  cases.back().benchmark = true;
  return {"prelu", prelu_reference, cases};
}

}  // namespace lockstep::ops
