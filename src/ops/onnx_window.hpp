// A sliding window as ONNX's attributes.
#pragma once

#include <vector>

#include "ops/onnx_scope.hpp"
#include "ops/window.hpp"

namespace lockstep::ops {

[[nodiscard]] inline std::vector<OnnxAttribute> onnx_window(const Window& window) {
  using Integers = std::vector<std::int64_t>;
  const WindowAxis &h = window.height, &w = window.width;
  return {{"kernel_shape", Integers{h.kernel, w.kernel}},
          {"strides", Integers{h.stride, w.stride}},
          {"dilations", Integers{h.dilation, w.dilation}},
          {"pads", Integers{h.before, w.before, h.after, w.after}}};
}

}  // namespace lockstep::ops
