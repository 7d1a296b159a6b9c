#include "ops/onnx_scope.hpp"

namespace lockstep::ops {

namespace {

/// ONNX's InstanceNormalization over groups as if they were channels, then the weight and bias of each channel.
void normalised(OnnxScope& scope, std::int64_t groups) {
  const Shape& shape = scope.input_shape();
  std::vector<std::int64_t> back{0, shape.back()}, by_channel{shape.back()};
  for (std::size_t i = 1; i + 1 < shape.size(); ++i) {
    back.push_back(shape[i]);
    by_channel.push_back(1);
  }
  const std::size_t count = groups;
  const std::string x = scope.reshape(scope.input(0, Layout::channels_first), {0, groups, -1});
  const std::string ones = scope.constant(std::vector<float>(count, 1), {groups});
  const std::string zeros = scope.constant(std::vector<float>(count, 0), {groups});
  const float epsilon = scope.attributes().number("epsilon");
  std::string y = scope.add("InstanceNormalization", {x, ones, zeros}, {{"epsilon", epsilon}});
  y = scope.reshape(y, back);
  if (scope.parameters() == 2) {
    y = scope.add("Mul", {y, scope.reshape(scope.parameter(0), by_channel)});
    y = scope.add("Add", {y, scope.reshape(scope.parameter(1), by_channel)});
  }
  scope.result(y, Layout::channels_first);
}

}  // namespace

void group_norm_to_onnx(OnnxScope& scope) {
  normalised(scope, scope.attributes().integer("groups"));
}

void instance_norm_to_onnx(OnnxScope& scope) {
  normalised(scope, scope.input_shape().back());
}

}  // namespace lockstep::ops
