#include "ops/onnx_scope.hpp"

namespace lockstep::ops {

void reshape_to_onnx(OnnxScope& scope) {
  std::vector<std::int64_t> shape = scope.output_shape();
  shape.front() = 0;
  const std::string x = scope.input();
  scope.result(scope.reshape(x, std::move(shape)));
}

void flatten_to_onnx(OnnxScope& scope) {
  reshape_to_onnx(scope);
}

}  // namespace lockstep::ops
