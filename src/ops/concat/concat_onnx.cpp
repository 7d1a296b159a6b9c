#include "ops/axis.hpp"
#include "ops/onnx_scope.hpp"

namespace lockstep::ops {

void concat_to_onnx(OnnxScope& scope) {
  const Layout layout = scope.layout();
  std::vector<std::string> inputs;
  for (std::size_t i = 0; i < scope.node().inputs.size(); ++i) inputs.push_back(scope.input(i, layout));
  const Shape& shape = scope.input_shape();
  const std::int64_t axis = OnnxScope::axis_in(layout, axis_of("concat", scope.attributes(), shape), shape.size());
  scope.result(scope.add("Concat", inputs, {{"axis", axis}}), layout);
}

}  // namespace lockstep::ops
