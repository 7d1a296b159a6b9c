#include "ops/onnx_window.hpp"

namespace lockstep::ops {

void avg_pool_to_onnx(OnnxScope& scope) {
  auto attributes = onnx_window(window_of("avg_pool", scope.attributes(), true));
  attributes.push_back({"count_include_pad", std::int64_t{scope.attributes().boolean("count_include_pad")}});
  scope.result(scope.add("AveragePool", {scope.input(0, Layout::channels_first)}, std::move(attributes)),
               Layout::channels_first);
}

}  // namespace lockstep::ops
