// conv: 2-D convolution of images; weight [filters, channels / groups, height, width].
#include <fmt/format.h>

#include <utility>

#include "lockstep/error.hpp"
#include "ops/conv/conv_attributes.hpp"
#include "ops/conv/conv_shape.hpp"
#include "ops/initialize.hpp"
#include "ops/onnx_window.hpp"

namespace lockstep::ops {

std::unique_ptr<Kernel> make_conv_cpu(const KernelRequest& request);

AttributeSpec filters_attribute() {
  return {.name = "filters", .kind = AttributeKind::integer, .doc = "channels of the output", .minimum = 1};
}

std::vector<AttributeSpec> further_conv_attributes(const std::string& initializer) {
  std::vector<AttributeSpec> attributes = {
      {.name = "dilation",
       .kind = AttributeKind::integers,
       .doc = "distance between the kernel's taps",
       .default_value = Attribute(std::int64_t{1}),
       .minimum = 1},
      {.name = "groups",
       .kind = AttributeKind::integer,
       .doc = "number of groups",
       .default_value = Attribute(std::int64_t{1}),
       .minimum = 1},
      {.name = "bias", .kind = AttributeKind::boolean, .doc = "add a bias", .default_value = Attribute(true)}};
  for (auto& attribute : initializer_attributes(initializer)) attributes.push_back(std::move(attribute));
  return attributes;
}

void require_groups(const std::string& op, const char* what, std::int64_t count, std::int64_t groups) {
  if (count % groups == 0) return;
  throw Error(ExitCode::configuration,
              fmt::format("{}: expected {} divisible by groups {}, found {}", op, what, groups, count));
}

ConvShape conv_shape(const Attributes& attributes, const TensorSpec& image) {
  ConvShape s;
  s.window = window_of("conv", attributes, false);
  s.image = window_shape("conv", s.window, image);
  s.filters = attributes.integer("filters");
  s.groups = attributes.integer("groups");
  s.bias = attributes.boolean("bias");
  require_groups("conv", "input channels", s.image.channels, s.groups);
  require_groups("conv", "filters", s.filters, s.groups);
  return s;
}

namespace {

Signature infer_conv(const Attributes& attributes, std::span<const TensorSpec> inputs) {
  const ConvShape s = conv_shape(attributes, inputs[0]);
  const WindowAxis &h = s.window.height, &w = s.window.width;
  const double taps = h.kernel * w.kernel;
  const std::int64_t in = s.image.channels / s.groups;
  const double fan_in = in * taps, fan_out = s.filters * taps;
  Signature signature;
  signature.outputs.push_back({DType::f32, {s.image.batch, s.image.out_height, s.image.out_width, s.filters}});
  signature.parameters.push_back(
      {"weight", {s.filters, in, h.kernel, w.kernel}, initializer_of(attributes, fan_in, fan_out)});
  if (s.bias) signature.parameters.push_back({"bias", {s.filters}, bias_initializer_of(attributes, fan_in), false});
  return signature;
}

Cost conv_cost(const Attributes& attributes, std::span<const TensorSpec> inputs, const Signature& signature) {
  const ConvShape s = conv_shape(attributes, inputs[0]);
  const auto taps = static_cast<double>(elements(signature.parameters[0].shape)) / s.filters;
  const double flops = 2 * taps * signature.outputs[0].elements();
  return {flops, 2 * flops};
}

}  // namespace

OpDef make_conv() {
  OpDef op;
  op.name = "conv";
  op.doc = "2-D convolution of images";
  op.attributes = {filters_attribute(), kernel_attribute(), stride_attribute(false),
                   padding_attribute(std::string("same"))};
  for (auto& attribute : further_conv_attributes("he_normal_fan_out")) op.attributes.push_back(std::move(attribute));
  op.backward_reads = {.inputs = true, .outputs = false};
  op.infer = infer_conv;
  op.cost = conv_cost;
  op.multiplies = true;
  op.kernels[DeviceKind::cpu] = make_conv_cpu;
  op.takes_low_precision = {DeviceKind::cpu};
  op.channels_last = {DeviceKind::cuda};
  op.epilogues[DeviceKind::cuda] = {"relu"};
  return op;
}

void conv_to_onnx(OnnxScope& scope) {
  const ConvShape shape = conv_shape(scope.attributes(), scope.input_spec());
  auto attributes = onnx_window(shape.window);
  attributes.push_back({"group", shape.groups});
  std::vector<std::string> inputs{scope.input(0, Layout::channels_first), scope.parameter(0)};
  if (shape.bias) inputs.push_back(scope.parameter(1));
  scope.result(scope.add("Conv", inputs, std::move(attributes)), Layout::channels_first);
}

}  // namespace lockstep::ops
