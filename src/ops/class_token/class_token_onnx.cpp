#include "ops/onnx_scope.hpp"

namespace lockstep::ops {

void class_token_to_onnx(OnnxScope& scope) {
  const std::string x = scope.input();
  // The batch has any size: the token is added to zeros of the size of the samples' first tokens.
  const std::vector<std::string> first{x, scope.integers({0}), scope.integers({1}), scope.integers({1})};
  const std::string zeros = scope.add("Mul", {scope.add("Slice", first), scope.number(0)});
  const std::string token = scope.add("Add", {zeros, scope.parameter(0)});
  scope.result(scope.add("Concat", {token, x}, {{"axis", std::int64_t{1}}}));
}

}  // namespace lockstep::ops
