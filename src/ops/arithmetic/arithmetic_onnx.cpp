#include "ops/arithmetic/channel_factors.hpp"
#include "ops/arithmetic/scale.hpp"
#include "ops/onnx_scope.hpp"

namespace lockstep::ops {

namespace {

/// From left to right, as the kernels compute.
void one_after_the_other(OnnxScope& scope, const std::string& type) {
  const Layout layout = scope.layout();
  std::string value = scope.input(0, layout);
  for (std::size_t i = 1; i < scope.node().inputs.size(); ++i) {
    value = scope.add(type, {value, scope.input(i, layout)});
  }
  scope.result(value, layout);
}

}  // namespace

void add_to_onnx(OnnxScope& scope) {
  one_after_the_other(scope, "Add");
}

void sub_to_onnx(OnnxScope& scope) {
  one_after_the_other(scope, "Sub");
}

void mul_to_onnx(OnnxScope& scope) {
  const Shape& x = scope.input_shape();
  const std::vector<TensorSpec> inputs = {scope.input_spec(), scope.input_spec(scope.node().inputs.size() - 1)};
  if (scope.node().inputs.size() != 2 || !are_channel_factors(inputs)) return one_after_the_other(scope, "Mul");
  const Layout layout = scope.layout();
  std::vector<std::int64_t> sizes(x.size(), 1);  // of the factors
  sizes.front() = 0;
  sizes[OnnxScope::axis_in(layout, x.size() - 1, x.size())] = x.back();
  scope.result(scope.add("Mul", {scope.input(0, layout), scope.reshape(scope.input(1), sizes)}), layout);
}

void scale_to_onnx(OnnxScope& scope) {
  const Layout layout = scope.layout();
  const float factor = scope.attributes().number("factor");
  std::string y = scope.add("Mul", {scope.input(0, layout), scope.number(factor)});
  if (const float shift = shift_of(scope.attributes()); shift != 0) y = scope.add("Add", {y, scope.number(shift)});
  scope.result(y, layout);
}

}  // namespace lockstep::ops
