#include "ops/onnx_scope.hpp"

namespace lockstep::ops {

void upsample_to_onnx(OnnxScope& scope) {
  const bool linear = scope.attributes().text("mode") == "bilinear";
  const auto factors = scope.attributes().integers("factor");
  const std::string x = scope.input(0, Layout::channels_first);
  const std::string scales =
      scope.constant({1, 1, static_cast<float>(factors.front()), static_cast<float>(factors.back())}, {4});
  std::vector<OnnxAttribute> attributes{{"mode", std::string(linear ? "linear" : "nearest")}};
  if (!linear) attributes.push_back({"nearest_mode", std::string("floor")});
  attributes.push_back({"coordinate_transformation_mode", std::string(linear ? "half_pixel" : "asymmetric")});
  scope.result(scope.add("Resize", {x, "", scales}, std::move(attributes)), Layout::channels_first);
}

}  // namespace lockstep::ops
