#include "ops/onnx_scope.hpp"

namespace lockstep::ops {

void softmax_to_onnx(OnnxScope& scope) {
  const std::string x = scope.input();
  scope.result(scope.add("Softmax", {x}, {{"axis", std::int64_t{-1}}}));
}

}  // namespace lockstep::ops
