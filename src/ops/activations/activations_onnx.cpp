#include "ops/onnx_scope.hpp"

namespace lockstep::ops {

void elu_to_onnx(OnnxScope& scope) {
  scope.elementwise("Elu", {{"alpha", static_cast<float>(scope.attributes().number("alpha"))}});
}

void hardswish_to_onnx(OnnxScope& scope) {
  scope.elementwise("HardSwish");
}

void leaky_relu_to_onnx(OnnxScope& scope) {
  scope.elementwise("LeakyRelu", {{"alpha", static_cast<float>(scope.attributes().number("slope"))}});
}

void relu_to_onnx(OnnxScope& scope) {
  scope.elementwise("Relu");
}

void relu6_to_onnx(OnnxScope& scope) {
  const Layout layout = scope.layout();
  scope.result(scope.add("Clip", {scope.input(0, layout), scope.number(0.0F), scope.number(6.0F)}), layout);
}

void sigmoid_to_onnx(OnnxScope& scope) {
  scope.elementwise("Sigmoid");
}

void silu_to_onnx(OnnxScope& scope) {
  const Layout layout = scope.layout();
  const std::string x = scope.input(0, layout);
  scope.result(scope.add("Mul", {x, scope.add("Sigmoid", {x})}), layout);
}

void softplus_to_onnx(OnnxScope& scope) {
  scope.elementwise("Softplus");
}

void tanh_to_onnx(OnnxScope& scope) {
  scope.elementwise("Tanh");
}

}  // namespace lockstep::ops
