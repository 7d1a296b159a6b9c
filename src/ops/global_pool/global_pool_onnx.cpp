#include <cmath>

#include "ops/axis.hpp"
#include "ops/onnx_scope.hpp"

namespace lockstep::ops {

namespace {

void reduce(OnnxScope& scope, bool maximum, Layout layout, std::vector<std::int64_t> axes) {
  const std::string x = scope.input(0, layout), over = scope.integers(std::move(axes));
  scope.result(scope.add(maximum ? "ReduceMax" : "ReduceMean", {x, over}, {{"keepdims", std::int64_t{0}}}));
}

/// Over the positions [b, T, ...] that come before each sample's end.
void reduce_counted(OnnxScope& scope, bool maximum) {
  const std::string over = scope.integers({1}), x = scope.with_padding(maximum ? -INFINITY : 0.0F);
  const std::string made = scope.add(maximum ? "ReduceMax" : "ReduceSum", {x, over}, {{"keepdims", std::int64_t{0}}});
  if (maximum) return scope.result(made);
  std::vector<std::int64_t> like(scope.output_shape().size(), 1);
  like[0] = 0;
  scope.result(scope.add("Div", {made, scope.reshape(scope.lengths_as_floats(1), std::move(like))}));
}

void reduce_axis(OnnxScope& scope, bool maximum) {
  if (scope.node().inputs.size() > 1) return reduce_counted(scope, maximum);
  const auto axis = axis_of(maximum ? "max" : "mean", scope.attributes(), scope.input_shape());
  reduce(scope, maximum, Layout::channels_last, {static_cast<std::int64_t>(axis)});
}

}  // namespace

void mean_to_onnx(OnnxScope& scope) {
  reduce_axis(scope, false);
}

void max_to_onnx(OnnxScope& scope) {
  reduce_axis(scope, true);
}

void global_pool_to_onnx(OnnxScope& scope) {
  const Layout layout = scope.layout();
  const std::size_t dimensions = scope.input_shape().size();
  if (dimensions == 2) return scope.result(scope.input());
  if (scope.node().inputs.size() > 1) return reduce_counted(scope, scope.attributes().text("kind") == "max");
  std::vector<std::int64_t> axes;
  for (std::size_t i = 1; i + 1 < dimensions; ++i) axes.push_back(OnnxScope::axis_in(layout, i, dimensions));
  reduce(scope, scope.attributes().text("kind") == "max", layout, std::move(axes));
}

}  // namespace lockstep::ops
