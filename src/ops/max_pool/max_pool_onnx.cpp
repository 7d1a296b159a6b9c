#include "ops/onnx_window.hpp"

namespace lockstep::ops {

void max_pool_to_onnx(OnnxScope& scope) {
  const auto attributes = onnx_window(window_of("max_pool", scope.attributes(), true));
  scope.result(scope.add("MaxPool", {scope.input(0, Layout::channels_first)}, attributes), Layout::channels_first);
}

}  // namespace lockstep::ops
