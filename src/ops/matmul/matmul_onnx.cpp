#include <numeric>

#include "ops/onnx_scope.hpp"

namespace lockstep::ops {

void matmul_to_onnx(OnnxScope& scope) {
  const std::string a = scope.input(0);
  std::string b = scope.input(1);
  if (scope.attributes().boolean("transpose")) {
    std::vector<std::int64_t> order(scope.input_shape(1).size());
    std::iota(order.begin(), order.end(), 0);
    std::swap(order[order.size() - 2], order[order.size() - 1]);
    b = scope.transpose(b, std::move(order));
  }
  scope.result(scope.add("MatMul", {a, b}));
}

}  // namespace lockstep::ops
