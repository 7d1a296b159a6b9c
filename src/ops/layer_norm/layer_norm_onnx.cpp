#include "ops/onnx_scope.hpp"

namespace lockstep::ops {

void layer_norm_to_onnx(OnnxScope& scope) {
  std::vector<std::string> inputs{scope.input(), scope.parameter(0)};
  if (scope.parameters() == 2) inputs.push_back(scope.parameter(1));
  const float epsilon = scope.attributes().number("epsilon");
  scope.result(scope.add("LayerNormalization", inputs, {{"axis", std::int64_t{-1}}, {"epsilon", epsilon}}));
}

}  // namespace lockstep::ops
