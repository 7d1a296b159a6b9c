#include "ops/onnx_scope.hpp"

namespace lockstep::ops {

void gelu_to_onnx(OnnxScope& scope) {
  scope.elementwise("Gelu", {{"approximate", scope.attributes().text("approximate")}});
}

}  // namespace lockstep::ops
