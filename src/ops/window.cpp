#include "ops/window.hpp"

#include <fmt/format.h>

#include <array>

#include "core/low_precision.hpp"
#include "lockstep/error.hpp"

namespace lockstep::ops {

namespace {

using Pair = std::array<std::int64_t, 2>;  // height, width

Pair pair_of(const std::string& op, const Attributes& attributes, const std::string& name) {
  const auto list = attributes.integers(name);
  if (list.size() == 1) return {list[0], list[0]};
  if (list.size() == 2) return {list[0], list[1]};
  throw Error(ExitCode::configuration,
              fmt::format("{}: {}: expected one integer or [height, width], found {} integers", op, name, list.size()));
}

void pad(WindowAxis& axis, const std::string& scheme) {
  if (scheme == "valid") return;
  axis.before = (axis.reach() - 1) / 2;
  axis.after = axis.reach() - 1 - axis.before;
}

std::int64_t out_size(const std::string& op, const char* what, const WindowAxis& axis, std::int64_t size) {
  const std::int64_t padded = size + axis.before + axis.after;
  if (padded < axis.reach()) {
    throw Error(
        ExitCode::configuration,
        fmt::format("{}: expected an input at least as {} as the kernel, which covers {} pixels, found {} with {} "
                    "of padding; take a smaller kernel or more padding",
                    op, what, axis.reach(), size, axis.before + axis.after));
  }
  return (padded - axis.reach()) / axis.stride + 1;
}

}  // namespace

Window window_of(const std::string& op, const Attributes& attributes, bool stride_is_kernel) {
  const Pair kernel = pair_of(op, attributes, "kernel");
  Pair stride = stride_is_kernel ? kernel : Pair{1, 1};
  if (attributes.has("stride")) stride = pair_of(op, attributes, "stride");
  const Pair dilation = attributes.has("dilation") ? pair_of(op, attributes, "dilation") : Pair{1, 1};
  Window window;
  window.height = {.kernel = kernel[0], .stride = stride[0], .dilation = dilation[0]};
  window.width = {.kernel = kernel[1], .stride = stride[1], .dilation = dilation[1]};
  if (attributes.is_text("padding")) {
    pad(window.height, attributes.text("padding"));
    pad(window.width, attributes.text("padding"));
  } else {
    const Pair padding = pair_of(op, attributes, "padding");
    window.height.before = window.height.after = padding[0];
    window.width.before = window.width.after = padding[1];
  }
  return window;
}

void require_image(const std::string& op, const TensorSpec& image) {
  const bool is_image =
      image.dtype == DType::f32 || is_low_precision(image.dtype);  // kernels may get it in low precision
  if (is_image && image.shape.size() == 4) return;
  throw Error(ExitCode::configuration,
              fmt::format("{}: expected images [batch, height, width, channels] of f32, found {} of {}", op,
                          to_string(image.shape), name_of(image.dtype)));
}

WindowShape window_shape(const std::string& op, const Window& window, const TensorSpec& image) {
  require_image(op, image);
  const Shape& x = image.shape;
  return {x[0], x[1], x[2], x[3], out_size(op, "high", window.height, x[1]), out_size(op, "wide", window.width, x[2])};
}

AttributeSpec kernel_attribute() {
  return {.name = "kernel",
          .kind = AttributeKind::integers,
          .doc = "size of the window: one integer or [height, width]",
          .minimum = 1};
}

AttributeSpec stride_attribute(bool stride_is_kernel) {
  AttributeSpec spec{.name = "stride",
                     .kind = AttributeKind::integers,
                     .doc = stride_is_kernel ? "step of the window; default: its size" : "step of the window",
                     .optional = stride_is_kernel,
                     .minimum = 1};
  if (!stride_is_kernel) spec.default_value = Attribute(std::int64_t{1});
  return spec;
}

AttributeSpec padding_attribute(const Attribute& default_value) {
  return {.name = "padding",
          .kind = AttributeKind::integers,
          .doc =
              "same (output size is input size / stride, rounded up; as much before as after for odd kernels), valid "
              "(none), or pixels: an integer or [height, width] for each side",
          .default_value = default_value,
          .minimum = 0,
          .choices = {"same", "valid"}};
}

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
