#include "ops/onnx_scope.hpp"

namespace lockstep::ops {

void prelu_to_onnx(OnnxScope& scope) {
  const std::string x = scope.input();
  scope.result(scope.add("PRelu", {x, scope.parameter(0)}));
}

}  // namespace lockstep::ops
