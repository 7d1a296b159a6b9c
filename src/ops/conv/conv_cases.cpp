#include "ops/conv/conv_shape.hpp"
#include "ops/op_case.hpp"

namespace lockstep::ops {

namespace {

using Int = std::int64_t;

/// y[n, i, j, f] = bias[f] + sum over taps and the group's channels.
double output_at(const ReferenceCall& call, const ConvShape& s, Int n, Int i, Int j, Int f) {
  const WindowAxis &h = s.window.height, &w = s.window.width;
  const Int in = s.image.channels / s.groups, group = f / (s.filters / s.groups);
  double sum = s.bias ? call.parameters[1].values[f] : 0;
  for (Int y = 0; y < h.kernel; ++y) {
    for (Int x = 0; x < w.kernel; ++x) {
      const Int row = i * h.stride - h.before + y * h.dilation, column = j * w.stride - w.before + x * w.dilation;
      if (row < 0 || row >= s.image.height || column < 0 || column >= s.image.width) continue;
      const Int pixel = ((n * s.image.height + row) * s.image.width + column) * s.image.channels + group * in;
      for (Int c = 0; c < in; ++c) {
        sum +=
            call.inputs[0].values[pixel + c] * call.parameters[0].values[((f * in + c) * h.kernel + y) * w.kernel + x];
      }
    }
  }
  return sum;
}

ReferenceResult conv_reference(const ReferenceCall& call) {
  const ConvShape s = conv_shape(call.attributes, {DType::f32, call.inputs[0].shape});
  DoubleTensor y{{s.image.batch, s.image.out_height, s.image.out_width, s.filters}, {}};
  for (Int n = 0; n < s.image.batch; ++n) {
    for (Int i = 0; i < s.image.out_height; ++i) {
      for (Int j = 0; j < s.image.out_width; ++j) {
        for (Int f = 0; f < s.filters; ++f) y.values.push_back(output_at(call, s, n, i, j, f));
      }
    }
  }
  return {{y}, {}};
}

Attributes conv(Int filters, Attribute kernel, std::map<std::string, Attribute> more = {}) {
  more["filters"] = filters;
  more["kernel"] = std::move(kernel);
  return Attributes(std::move(more));
}

OpCase small(std::string name, Attributes attributes, Shape image) {
  return {.name = std::move(name), .attributes = std::move(attributes), .inputs = {{DType::f32, std::move(image)}}};
}

OpCase inference(OpCase the_case) {
  the_case.mode = Mode::inference;
  return the_case;
}

OpCase conv_speed(std::string name, Attributes attributes, Shape image) {
  OpCase result = small(std::move(name), std::move(attributes), std::move(image));
  result.benchmark = true;
  return result;
}

}  // namespace

OpCases make_conv_cases() {
  const Int one = 1, two = 2, three = 3;
  const std::vector<Int> tall{3, 1}, wide{1, 2}, five{5, 1}, every_second{2, 1};
  const Attribute valid = std::string("valid");
  const std::map<std::string, Attribute> plain = {{"bias", false}}, halved = {{"bias", false}, {"stride", two}};
  return {
      "conv",
      conv_reference,
      {
          small("same", conv(4, three), {2, 5, 7, 3}),
          small("seven_channels", conv(7, three), {1, 4, 5, 7}),
          small("no_bias", conv(16, three, plain), {2, 6, 5, 16}),
          small("stride_2", conv(32, three, halved), {2, 8, 8, 16}),
          small("stride_2_odd_size", conv(5, three, {{"stride", two}}), {3, 7, 9, 2}),
          small("valid", conv(6, three, {{"padding", valid}}), {2, 6, 5, 3}),
          small("padding_by_number", conv(3, three, {{"padding", two}}), {1, 4, 4, 2}),
          small("padding_by_side", conv(3, three, {{"padding", wide}}), {1, 4, 4, 2}),
          small("even_kernel", conv(3, two), {2, 5, 5, 2}),
          small("tall_kernel", conv(3, tall, {{"stride", wide}}), {2, 5, 6, 2}),
          small("one_dimension", conv(5, five, {{"stride", every_second}}), {2, 17, 1, 3}),
          small("one_dimension_dilated", conv(8, tall, {{"dilation", every_second}, {"bias", false}}), {3, 12, 1, 8}),
          small("last_row_unused", conv(3, two, {{"stride", two}, {"padding", valid}}), {2, 5, 5, 2}),
          small("one_by_one", conv(32, one, halved), {2, 8, 8, 16}),
          small("dilated", conv(4, three, {{"dilation", two}}), {2, 7, 8, 3}),
          small("groups", conv(6, three, {{"groups", two}}), {2, 5, 5, 4}),
          small("tiles", conv(20, three), {2, 6, 7, 12}),
          small("tiles_of_groups", conv(80, three, {{"groups", two}}), {2, 3, 5, 48}),
          small("depthwise", conv(8, three, {{"groups", Int{8}}}), {2, 6, 6, 8}),
          small("large_image", conv(16, three, plain), {1, 32, 32, 16}),
          small("single_pixel", conv(3, three), {1, 1, 1, 2}),
          small("wide_channels", conv(64, three, plain), {1, 4, 4, 64}),
          inference(small("inference", conv(16, three), {2, 6, 6, 16})),
          conv_speed("stem_3_16", conv(16, three, plain), {16, 32, 32, 3}),
          conv_speed("32x32_16", conv(16, three, plain), {16, 32, 32, 16}),
          conv_speed("32x32_16_to_32", conv(32, three, halved), {16, 32, 32, 16}),
          conv_speed("shortcut_16_to_32", conv(32, one, halved), {16, 32, 32, 16}),
          conv_speed("16x16_32", conv(32, three, plain), {16, 16, 16, 32}),
          conv_speed("16x16_32_to_64", conv(64, three, halved), {16, 16, 16, 32}),
          conv_speed("8x8_64", conv(64, three, plain), {16, 8, 8, 64}),
          conv_speed("mnist_1_32", conv(32, three), {16, 28, 28, 1}),
      },
      CpuOrder::its_own};
}

}  // namespace lockstep::ops
