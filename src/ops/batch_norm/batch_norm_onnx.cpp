#include "ops/onnx_scope.hpp"

namespace lockstep::ops {

void batch_norm_to_onnx(OnnxScope& scope) {
  const std::vector<std::string> inputs{scope.input(0, Layout::channels_first), scope.parameter(0), scope.parameter(1),
                                        scope.state(0), scope.state(1)};
  const float epsilon = scope.attributes().number("epsilon");
  scope.result(scope.add("BatchNormalization", inputs, {{"epsilon", epsilon}}), Layout::channels_first);
}

}  // namespace lockstep::ops
