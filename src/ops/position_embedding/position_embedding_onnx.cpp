#include "ops/onnx_scope.hpp"

namespace lockstep::ops {

void position_embedding_to_onnx(OnnxScope& scope) {
  const bool same = scope.attributes().has("same") && scope.attributes().boolean("same");
  const std::int64_t positions = same ? 1 : scope.input_shape()[1], width = scope.input_shape()[2];
  const bool all = scope.parameter_values(0).size() == static_cast<std::size_t>(positions * width);
  const std::string x = scope.input();
  if (all) return scope.result(scope.add("Add", {x, scope.parameter(0)}));
  const std::vector<std::string> first{scope.parameter(0), scope.integers({0}), scope.integers({positions}),
                                       scope.integers({0})};
  scope.result(scope.add("Add", {x, scope.add("Slice", first)}));
}

}  // namespace lockstep::ops
