#include "ops/onnx_scope.hpp"

namespace lockstep::ops {

void linear_to_onnx(OnnxScope& scope) {
  const bool bias = scope.parameters() == 2;
  if (scope.input_shape().size() == 2) {
    std::vector<std::string> inputs{scope.input(), scope.parameter(0)};
    if (bias) inputs.push_back(scope.parameter(1));
    return scope.result(scope.add("Gemm", inputs, {{"transB", std::int64_t{1}}}));
  }
  std::string y = scope.add("MatMul", {scope.input(), scope.transpose(scope.parameter(0), {1, 0})});
  if (bias) y = scope.add("Add", {y, scope.parameter(1)});
  scope.result(y);
}

}  // namespace lockstep::ops
