#include "ops/onnx_scope.hpp"

namespace lockstep::ops {

void transpose_to_onnx(OnnxScope& scope) {
  std::vector<std::int64_t> order = scope.attributes().integers("order");
  order.insert(order.begin(), 0);
  const std::string x = scope.input();
  scope.result(scope.transpose(x, std::move(order)));
}

}  // namespace lockstep::ops
