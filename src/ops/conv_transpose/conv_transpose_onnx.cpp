#include <algorithm>

#include "ops/conv_transpose/conv_transpose_shape.hpp"
#include "ops/onnx_window.hpp"

namespace lockstep::ops {

void conv_transpose_to_onnx(OnnxScope& scope) {
  ConvShape shape = conv_transpose_shape(scope.attributes(), scope.input_spec());
  std::vector<std::int64_t> added;  // rows and columns that the output has more, where the window is short of padding
  for (WindowAxis* axis : {&shape.window.height, &shape.window.width}) {
    added.push_back(std::max<std::int64_t>(0, -axis->after));
    axis->after = std::max<std::int64_t>(0, axis->after);
  }
  auto attributes = onnx_window(shape.window);
  attributes.push_back({"group", shape.groups});
  attributes.push_back({"output_padding", std::move(added)});
  std::vector<std::string> inputs{scope.input(0, Layout::channels_first), scope.parameter(0)};
  if (shape.bias) inputs.push_back(scope.parameter(1));
  scope.result(scope.add("ConvTranspose", inputs, std::move(attributes)), Layout::channels_first);
}

}  // namespace lockstep::ops
