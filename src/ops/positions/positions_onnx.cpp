#include <limits>

#include "ops/onnx_scope.hpp"

namespace lockstep::ops {

void last_to_onnx(OnnxScope& scope) {
  if (scope.node().inputs.size() < 2) {
    const std::string at = scope.integers({scope.input_shape()[1] - 1});
    const std::string one = scope.add("Gather", {scope.input(), at}, {{"axis", std::int64_t{1}}});
    return scope.result(scope.add("Squeeze", {one, scope.integers({1})}));
  }
  const std::string at = scope.add("Sub", {scope.lengths_as_integers(1), scope.integers({1})});
  const std::vector<std::string> inputs{scope.input(), scope.reshape(at, {0, 1})};
  scope.result(scope.add("GatherND", inputs, {{"batch_dims", std::int64_t{1}}}));
}

void reverse_to_onnx(OnnxScope& scope) {
  const std::string x = scope.input();
  if (scope.node().inputs.size() < 2) {
    const std::string end = scope.integers({std::numeric_limits<std::int64_t>::min()}), back = scope.integers({-1});
    return scope.result(scope.add("Slice", {x, back, end, scope.integers({1}), back}));
  }
  scope.result(scope.add("ReverseSequence", {x, scope.lengths_as_integers(1)},
                         {{"batch_axis", std::int64_t{0}}, {"time_axis", std::int64_t{1}}}));
}

void mask_to_onnx(OnnxScope& scope) {
  scope.result(scope.with_padding(0));
}

}  // namespace lockstep::ops
