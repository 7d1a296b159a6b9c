// The naive reference: each pixel adds the kernel to the output.
#include "ops/conv_transpose/conv_transpose_shape.hpp"
#include "ops/op_case.hpp"

namespace lockstep::ops {

namespace {

using Extent = std::int64_t;

/// Adds what pixel (i, j) of channel c of a sample gives.
void scatter(const ReferenceCall& call, const ConvShape& s, Extent n, Extent i, Extent j, Extent c, DoubleTensor& y) {
  const WindowAxis &h = s.window.height, &w = s.window.width;
  const Extent out = s.image.channels / s.groups, group = c / (s.filters / s.groups);
  const double value = call.inputs[0].values[((n * s.image.out_height + i) * s.image.out_width + j) * s.filters + c];
  for (Extent v = 0; v < h.kernel; ++v) {
    for (Extent u = 0; u < w.kernel; ++u) {
      const Extent row = i * h.stride - h.before + v * h.dilation, column = j * w.stride - w.before + u * w.dilation;
      if (row < 0 || row >= s.image.height || column < 0 || column >= s.image.width) continue;
      const Extent pixel = ((n * s.image.height + row) * s.image.width + column) * s.image.channels + group * out;
      for (Extent f = 0; f < out; ++f) {
        y.values[pixel + f] += value * call.parameters[0].values[((c * out + f) * h.kernel + v) * w.kernel + u];
      }
    }
  }
}

ReferenceResult conv_transpose_reference(const ReferenceCall& call) {
  const ConvShape s = conv_transpose_shape(call.attributes, {DType::f32, call.inputs[0].shape});
  DoubleTensor y{{s.image.batch, s.image.height, s.image.width, s.image.channels}, {}};
  y.values.resize(elements(y.shape));
  for (std::size_t i = 0; s.bias && i < y.values.size(); ++i) {
    y.values[i] = call.parameters[1].values[i % s.image.channels];
  }
  for (Extent n = 0; n < s.image.batch; ++n) {
    for (Extent i = 0; i < s.image.out_height; ++i) {
      for (Extent j = 0; j < s.image.out_width; ++j) {
        for (Extent c = 0; c < s.filters; ++c) scatter(call, s, n, i, j, c, y);
      }
    }
  }
  return {{y}, {}};
}

OpCase transposed_case(std::string name, Extent filters, Attribute kernel, std::map<std::string, Attribute> more,
                       Shape image) {
  more["filters"] = filters;
  more["kernel"] = std::move(kernel);
  return {
      .name = std::move(name), .attributes = Attributes(std::move(more)), .inputs = {{DType::f32, std::move(image)}}};
}

}  // namespace

OpCases make_conv_transpose_cases() {
  const Extent one = 1, two = 2, three = 3, four = 4;
  const std::vector<Extent> tall{3, 2}, wide{1, 2};
  const Attribute valid = std::string("valid");
  std::vector<OpCase> cases = {
      transposed_case("same", 4, three, {}, {2, 5, 7, 3}),
      transposed_case("twice", 4, two, {{"stride", two}}, {2, 3, 4, 3}),
      transposed_case("twice_overlapping", 5, four, {{"stride", two}}, {2, 4, 3, 3}),
      transposed_case("twice_odd", 3, three, {{"stride", two}}, {2, 4, 3, 4}),
      transposed_case("no_bias", 16, three, {{"stride", two}, {"bias", false}}, {2, 4, 4, 16}),
      transposed_case("valid", 3, three, {{"stride", two}, {"padding", valid}}, {1, 4, 5, 2}),
      transposed_case("kernel_below_stride", 3, two, {{"stride", three}, {"padding", valid}}, {1, 3, 3, 2}),
      transposed_case("output_padding", 3, three, {{"stride", two}, {"padding", one}, {"output_padding", one}},
                      {2, 3, 4, 2}),
      transposed_case("sides", 2, tall,
                      {{"stride", wide}, {"padding", wide}, {"output_padding", std::vector<Extent>{0, 1}}},
                      {1, 4, 4, 3}),
      transposed_case("dilated", 3, three, {{"stride", two}, {"dilation", two}}, {1, 4, 4, 2}),
      transposed_case("groups", 6, three, {{"stride", two}, {"groups", two}}, {2, 3, 3, 4}),
      transposed_case("depthwise", 8, four, {{"stride", two}, {"groups", Extent{8}}}, {2, 3, 3, 8}),
      transposed_case("single_pixel", 3, two, {{"stride", two}}, {1, 1, 1, 2}),
      transposed_case("empty", 3, two, {{"stride", two}}, {0, 3, 3, 2}),
      transposed_case("inference", 16, two, {{"stride", two}}, {2, 4, 4, 16}),
      transposed_case("speed", 16, two, {{"stride", two}}, {16, 16, 16, 32}),
  };
  cases[cases.size() - 2].mode = Mode::inference;
  cases.back().benchmark = true;
  return {"conv_transpose", conv_transpose_reference, cases, CpuOrder::its_own};
}

}  // namespace lockstep::ops
