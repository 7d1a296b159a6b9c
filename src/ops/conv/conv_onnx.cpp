#include "ops/conv/conv_shape.hpp"
#include "ops/onnx_window.hpp"

namespace lockstep::ops {

void conv_to_onnx(OnnxScope& scope) {
  const ConvShape shape = conv_shape(scope.attributes(), scope.input_spec());
  auto attributes = onnx_window(shape.window);
  attributes.push_back({"group", shape.groups});
  std::vector<std::string> inputs{scope.input(0, Layout::channels_first), scope.parameter(0)};
  if (shape.bias) inputs.push_back(scope.parameter(1));
  scope.result(scope.add("Conv", inputs, std::move(attributes)), Layout::channels_first);
}

}  // namespace lockstep::ops
