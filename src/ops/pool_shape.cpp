#include "ops/pool_shape.hpp"

#include <fmt/format.h>

#include "lockstep/error.hpp"

namespace lockstep::ops {

namespace {

void require_less_padding(const std::string& op, const WindowAxis& axis) {
  if (std::max(axis.before, axis.after) < axis.kernel) return;
  throw Error(ExitCode::configuration, fmt::format("{}: expected a padding smaller than the kernel {}, found {}", op,
                                                   axis.kernel, std::max(axis.before, axis.after)));
}

}  // namespace

PoolShape pool_shape(const std::string& op, const Attributes& attributes, const TensorSpec& image) {
  PoolShape shape;
  shape.window = window_of(op, attributes, true);
  require_less_padding(op, shape.window.height);
  require_less_padding(op, shape.window.width);
  shape.image = window_shape(op, shape.window, image);
  return shape;
}

std::vector<AttributeSpec> pool_attributes() {
  return {kernel_attribute(), stride_attribute(true), padding_attribute(Attribute(std::int64_t{0}))};
}

}  // namespace lockstep::ops
