#include "ops/onnx_scope.hpp"

namespace lockstep::ops {

void rms_norm_to_onnx(OnnxScope& scope) {
  const std::string x = scope.input();
  const std::string squares = scope.add("Mul", {x, x});
  const std::string mean = scope.add("ReduceMean", {squares, scope.integers({-1})});
  const float epsilon = scope.attributes().number("epsilon");
  const std::string root = scope.add("Sqrt", {scope.add("Add", {mean, scope.number(epsilon)})});
  scope.result(scope.add("Mul", {scope.add("Div", {x, root}), scope.parameter(0)}));
}

}  // namespace lockstep::ops
