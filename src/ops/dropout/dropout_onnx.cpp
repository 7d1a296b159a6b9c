#include "ops/onnx_scope.hpp"

namespace lockstep::ops {

void dropout_to_onnx(OnnxScope& scope) {
  const Layout layout = scope.layout();
  scope.result(scope.input(0, layout), layout);
}

}  // namespace lockstep::ops
