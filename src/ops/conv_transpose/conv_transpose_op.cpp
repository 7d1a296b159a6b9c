// conv_transpose: the transpose of a 2-D convolution, which makes images larger: each pixel adds the kernel, times
// itself, to the output. Weight [channels, filters / groups, height, width], as PyTorch's ConvTranspose2d.
// Source: Zeiler, Krishnan, Taylor and Fergus, "Deconvolutional Networks", 2010.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lockstep/error.hpp"
#include "ops/conv/conv_attributes.hpp"
#include "ops/conv_transpose/conv_transpose_shape.hpp"
#include "ops/initialize.hpp"
#include "ops/onnx_window.hpp"

namespace lockstep::ops {

std::unique_ptr<Kernel> make_conv_transpose_cpu(const KernelRequest& request);

namespace {

/// Sets the padding of an axis for `same`: the output has the input's size times the stride. Of an odd number of pixels
/// the larger half is behind.
void pad_for_same(const char* what, WindowAxis& axis) {
  const std::int64_t total = axis.reach() - axis.stride;
  if (total < 0) {
    throw Error(ExitCode::configuration,
                fmt::format("conv_transpose: padding same: expected a kernel at least as {} as the stride {}, found {}",
                            what, axis.stride, axis.reach()));
  }
  axis.before = total / 2;
  axis.after = total - axis.before;
}

/// Rows or columns of the output; `added`: output_padding, of which the window's padding behind the image is short.
std::int64_t transposed_size(const char* what, WindowAxis& axis, std::int64_t size, std::int64_t added) {
  if (added >= std::max(axis.stride, axis.dilation)) {
    throw Error(ExitCode::configuration,
                fmt::format("conv_transpose: output_padding: expected less than the stride {} or the dilation {}, "
                            "found {}",
                            axis.stride, axis.dilation, added));
  }
  axis.after -= added;
  const std::int64_t out = (size - 1) * axis.stride + axis.reach() - axis.before - axis.after;
  if (size < 1 || out < 1) {
    throw Error(
        ExitCode::configuration,
        fmt::format("conv_transpose: expected an output at least one pixel {}, found {} of {} pixels; take less "
                    "padding",
                    what, out, size));
  }
  return out;
}

}  // namespace

ConvShape conv_transpose_shape(const Attributes& attributes, const TensorSpec& input) {
  require_image("conv_transpose", input);
  ConvShape s;
  s.window = window_of("conv_transpose", attributes, false);
  const auto added = attributes.integers("output_padding");
  if (attributes.is_text("padding") && attributes.text("padding") == "same") {
    if (std::any_of(added.begin(), added.end(), [](std::int64_t n) { return n > 0; })) {
      throw Error(ExitCode::configuration,
                  "conv_transpose: output_padding: padding same gives the input's size times the stride; leave it out, "
                  "or give the padding in pixels");
    }
    pad_for_same("high", s.window.height);
    pad_for_same("wide", s.window.width);
  }
  if (added.size() > 2) {
    throw Error(
        ExitCode::configuration,
        fmt::format("conv_transpose: output_padding: expected one integer or [height, width], found {} integers",
                    added.size()));
  }
  const Shape& x = input.shape;
  s.filters = x[3];
  s.groups = attributes.integer("groups");
  s.bias = attributes.boolean("bias");
  s.image = {x[0], 0, 0, attributes.integer("filters"), x[1], x[2]};
  s.image.height = transposed_size("high", s.window.height, x[1], added.front());
  s.image.width = transposed_size("wide", s.window.width, x[2], added.back());
  require_groups("conv_transpose", "input channels", s.filters, s.groups);
  require_groups("conv_transpose", "filters", s.image.channels, s.groups);
  return s;
}

namespace {

Signature infer_conv_transpose(const Attributes& attributes, std::span<const TensorSpec> inputs) {
  const ConvShape s = conv_transpose_shape(attributes, inputs[0]);
  const WindowAxis &h = s.window.height, &w = s.window.width;
  const double taps = h.kernel * w.kernel, strides = h.stride * w.stride;
  // How many products a pixel of the output sums, on average, and in how many a pixel of the input is.
  const std::int64_t in = s.filters / s.groups, out = s.image.channels / s.groups;
  const double fan_in = in * taps / strides, fan_out = out * taps;
  Signature signature;
  signature.outputs.push_back({DType::f32, {s.image.batch, s.image.height, s.image.width, s.image.channels}});
  signature.parameters.push_back(
      {"weight", {s.filters, out, h.kernel, w.kernel}, initializer_of(attributes, fan_in, fan_out)});
  if (s.bias) {
    signature.parameters.push_back({"bias", {s.image.channels}, bias_initializer_of(attributes, fan_in), false});
  }
  return signature;
}

Cost conv_transpose_cost(const Attributes& /*attributes*/, std::span<const TensorSpec> inputs,
                         const Signature& signature) {
  const double of_channel = static_cast<double>(elements(signature.parameters[0].shape)) / inputs[0].shape.back();
  const double flops = 2 * of_channel * inputs[0].elements();
  return {flops, 2 * flops};
}

}  // namespace

OpDef make_conv_transpose() {
  OpDef op;
  op.name = "conv_transpose";
  op.doc = "transposed convolution: multiplies image sizes by the stride";
  op.attributes = {filters_attribute(),
                   kernel_attribute(),
                   {.name = "stride",
                    .kind = AttributeKind::integers,
                    .doc = "distance of neighboring input pixels in the output",
                    .default_value = Attribute(std::int64_t{1}),
                    .minimum = 1},
                   {.name = "padding",
                    .kind = AttributeKind::integers,
                    .doc = "pixels cut off the output: same (output size is input size times stride), valid (none), an "
                           "integer or [height, width] for each side",
                    .default_value = Attribute(std::string("same")),
                    .minimum = 0,
                    .choices = {"same", "valid"}},
                   {.name = "output_padding",
                    .kind = AttributeKind::integers,
                    .doc = "pixels added at the output's end: one integer or [height, width]",
                    .default_value = Attribute(std::int64_t{0}),
                    .minimum = 0}};
  for (auto& attribute : further_conv_attributes("he_normal")) op.attributes.push_back(std::move(attribute));
  op.backward_reads = {.inputs = true, .outputs = false};
  op.infer = infer_conv_transpose;
  op.cost = conv_transpose_cost;
  op.multiplies = true;
  op.kernels[DeviceKind::cpu] = make_conv_transpose_cpu;
  return op;
}

void conv_transpose_to_onnx(OnnxScope& scope) {
  ConvShape shape = conv_transpose_shape(scope.attributes(), scope.input_spec());
  std::vector<std::int64_t> added;  // rows and columns that the output has more, where the window is short of padding
  for (WindowAxis* axis : {&shape.window.height, &shape.window.width}) {
    added.push_back(std::max<std::int64_t>(0, -axis->after));
    axis->after = std::max<std::int64_t>(0, axis->after);
  }
  auto attributes = onnx_window(shape.window);
  attributes.push_back({"group", shape.groups});
  attributes.push_back({"output_padding", std::move(added)});
  std::vector<std::string> inputs{scope.input(0, Layout::channels_first), scope.parameter(0)};
  if (shape.bias) inputs.push_back(scope.parameter(1));
  scope.result(scope.add("ConvTranspose", inputs, std::move(attributes)), Layout::channels_first);
}

}  // namespace lockstep::ops
