#include "ops/axis.hpp"
#include "ops/onnx_scope.hpp"

namespace lockstep::ops {

namespace {

void reduce(OnnxScope& scope, bool maximum, Layout layout, std::vector<std::int64_t> axes) {
  const std::string x = scope.input(0, layout), over = scope.integers(std::move(axes));
  scope.result(scope.add(maximum ? "ReduceMax" : "ReduceMean", {x, over}, {{"keepdims", std::int64_t{0}}}));
}

void reduce_axis(OnnxScope& scope, bool maximum) {
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
  std::vector<std::int64_t> axes;
  for (std::size_t i = 1; i + 1 < dimensions; ++i) axes.push_back(OnnxScope::axis_in(layout, i, dimensions));
  reduce(scope, scope.attributes().text("kind") == "max", layout, std::move(axes));
}

}  // namespace lockstep::ops
