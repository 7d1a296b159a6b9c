#include "ops/onnx_scope.hpp"

namespace lockstep::ops {

void pad_to_onnx(OnnxScope& scope) {
  auto sides = scope.attributes().integers("sides");
  if (sides.size() == 1) sides = {sides[0], sides[0]};
  if (sides.size() == 2) sides = {sides[0], sides[0], sides[1], sides[1]};
  const bool reflect = scope.attributes().text("mode") == "reflect";
  const Layout layout = scope.layout();
  const std::int64_t row = OnnxScope::axis_in(layout, 1, 4), column = OnnxScope::axis_in(layout, 2, 4);
  std::vector<std::int64_t> pads(8, 0);  // before each dimension, then behind each
  pads[row] = sides[0];
  pads[row + 4] = sides[1];
  pads[column] = sides[2];
  pads[column + 4] = sides[3];
  const std::string mode = reflect ? "reflect" : "constant";
  const std::string x = scope.input(0, layout);
  scope.result(scope.add("Pad", {x, scope.integers(std::move(pads))}, {{"mode", mode}}), layout);
}

}  // namespace lockstep::ops
