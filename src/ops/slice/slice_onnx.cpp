#include "ops/axis.hpp"
#include "ops/onnx_scope.hpp"

namespace lockstep::ops {

void slice_to_onnx(OnnxScope& scope) {
  const Layout layout = scope.layout();
  const Shape& shape = scope.input_shape();
  const std::size_t axis = axis_of("slice", scope.attributes(), shape);
  std::int64_t begin = scope.attributes().integer("begin");
  if (begin < 0) begin += shape[axis];
  const std::int64_t end = begin + scope.output_shape()[axis];
  const std::string x = scope.input(0, layout);
  const std::vector<std::string> inputs{x, scope.integers({begin}), scope.integers({end}),
                                        scope.integers({OnnxScope::axis_in(layout, axis, shape.size())})};
  scope.result(scope.add("Slice", inputs), layout);
}

}  // namespace lockstep::ops
