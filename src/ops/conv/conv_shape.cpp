// Apart from the op, which brings the CPU's kernel and its library: a GPU's kernel needs the shapes only.
#include "ops/conv/conv_shape.hpp"

#include <fmt/format.h>

#include "lockstep/error.hpp"

namespace lockstep::ops {

namespace {

void require_divisible(const char* what, std::int64_t count, std::int64_t groups) {
  if (count % groups == 0) return;
  throw Error(ExitCode::configuration,
              fmt::format("conv: expected {} divisible by groups {}, found {}", what, groups, count));
}

}  // namespace

ConvShape conv_shape(const Attributes& attributes, const TensorSpec& image) {
  ConvShape s;
  s.window = window_of("conv", attributes, false);
  s.image = window_shape("conv", s.window, image);
  s.filters = attributes.integer("filters");
  s.groups = attributes.integer("groups");
  s.bias = attributes.boolean("bias");
  require_divisible("input channels", s.image.channels, s.groups);
  require_divisible("filters", s.filters, s.groups);
  return s;
}

}  // namespace lockstep::ops
