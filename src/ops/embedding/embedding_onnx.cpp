#include "ops/onnx_scope.hpp"

namespace lockstep::ops {

void embedding_to_onnx(OnnxScope& scope) {
  scope.result(scope.add("Gather", {scope.parameter(0), scope.input()}));
}

}  // namespace lockstep::ops
