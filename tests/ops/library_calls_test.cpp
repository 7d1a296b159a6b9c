// How GPU kernels pass their matrices and images to libraries: simulated on the CPU, with the sizes and strides that
// the library is given.
#include <gtest/gtest.h>

#include <numeric>

#include "ops/attention/attention_grid.hpp"
#include "ops/attention/attention_layout.hpp"
#include "ops/conv/conv_grid.hpp"
#include "ops/conv/conv_layout.hpp"
#include "ops/linear/library_linear.hpp"
#include "ops/op_driver.hpp"
#include "ops/registry.hpp"

namespace lockstep::ops {

namespace {

using device::ColumnMatrix;
using device::ColumnProduct;
using Floats = std::vector<float>;

/// Small integers: products and sums are exact in any order.
Floats integers(std::int64_t n, std::uint64_t seed) {
  Floats values(static_cast<std::size_t>(n));
  for (auto& value : values) value = static_cast<float>((seed = seed * 1103515245 + 12345) >> 16U & 7U) - 3;
  return values;
}

float element(const ColumnMatrix& matrix, const Floats& data, std::int64_t row, std::int64_t column) {
  if (matrix.transposed) std::swap(row, column);
  return data.at(static_cast<std::size_t>(row + column * matrix.step()));
}

/// The result of cuBLAS.
Floats product(const ColumnProduct& p, const Floats& a, const Floats& b) {
  EXPECT_EQ(p.a.rows * p.a.columns, static_cast<std::int64_t>(a.size()));
  EXPECT_EQ(p.b.rows * p.b.columns, static_cast<std::int64_t>(b.size()));
  EXPECT_EQ(p.k(), p.b.transposed ? p.b.columns : p.b.rows);
  Floats d(static_cast<std::size_t>(p.m() * p.n()));
  for (std::int64_t i = 0; i < p.m(); ++i) {
    for (std::int64_t j = 0; j < p.n(); ++j) {
      for (std::int64_t k = 0; k < p.k(); ++k) {
        d[static_cast<std::size_t>(i + j * p.m())] += element(p.a, a, i, k) * element(p.b, b, k, j);
      }
    }
  }
  return d;
}

}  // namespace

TEST(LibraryCalls, LinearsProductsAreThoseOfItsOwnKernels) {
  const LinearSizes sizes{5, 3, 4};
  const Floats x = integers(15, 1), weight = integers(12, 2), dy = integers(20, 3);
  Floats y(20), dx(15), dw(12);
  LinearProducts<device::HostGrid, float, float, float> own(sizes, false);
  own.output({}, x.data(), weight.data(), nullptr, y.data());
  own.input_gradient({}, dy.data(), weight.data(), dx.data());
  own.weight_gradient({}, x.data(), dy.data(), dw.data());
  EXPECT_EQ(product(output_product(sizes), weight, x), y);
  EXPECT_EQ(product(input_gradient_product(sizes), weight, dy), dx);
  EXPECT_EQ(product(weight_gradient_product(sizes), x, dy), dw);
}

TEST(LibraryCalls, ABiasIsAddedToTheColumnsThatCublasSees) {
  EXPECT_EQ(output_product({5, 3, 4}).m(), 4);  // as many as the bias has, for CUBLASLT_EPILOGUE_BIAS
}

namespace {

ConvShape grouped() {
  ConvShape s;
  s.window.height = {.kernel = 3, .stride = 2, .dilation = 1, .before = 1, .after = 1};
  s.window.width = {.kernel = 2, .stride = 1, .dilation = 2, .before = 0, .after = 1};
  s.image = {2, 5, 6, 4, 3, 5};
  s.filters = 6;
  s.groups = 2;
  s.bias = false;
  return s;
}

using Place = std::array<std::int64_t, 4>;

float element(const device::ImageLayout& layout, const Floats& data, const Place& at) {
  return data.at(static_cast<std::size_t>(std::inner_product(at.begin(), at.end(), layout.strides.begin(), 0L)));
}

/// The result of cuDNN for the layout at one place of the output: cross-correlation.
float output_at(const device::ConvolutionLayout& l, const Floats& image, const Floats& weight, const Place& at) {
  const auto [n, f, i, j] = at;
  const auto [filters, channels, height, width] = l.weight.sizes;
  const std::int64_t groups = l.image.sizes[1] / channels, first = f / (filters / groups) * channels;
  float sum = 0;
  for (std::int64_t tap = 0; tap < height * width; ++tap) {
    const std::int64_t row = i * l.stride[0] - l.before[0] + tap / width * l.dilation[0];
    const std::int64_t column = j * l.stride[1] - l.before[1] + tap % width * l.dilation[1];
    if (row < 0 || row >= l.image.sizes[2] || column < 0 || column >= l.image.sizes[3]) continue;
    for (std::int64_t c = 0; c < channels; ++c) {
      sum += element(l.image, image, {n, first + c, row, column}) *
             element(l.weight, weight, {f, c, tap / width, tap % width});
    }
  }
  return sum;
}

}  // namespace

TEST(LibraryCalls, ConvsLayoutIsThatOfItsOwnKernel) {
  const ConvShape s = grouped();
  const device::ConvolutionLayout layout = convolution_layout(s);
  const FilterSizes filter{2, 6};
  const Floats x = integers(2 * 5 * 6 * 4, 1), weight = integers(6 * 2 * 6, 2);
  Floats packed(weight.size()), y(2 * 3 * 5 * 6);
  using device::HostGrid;
  HostGrid::each(nullptr, 72, ChannelsLastFunctor<float>{weight.data(), packed.data(), filter});
  HostGrid::each(nullptr, static_cast<std::int64_t>(y.size()),
                 ConvFunctor<float, float>{x.data(), weight.data(), nullptr, y.data(), s});
  const auto [batch, filters, height, width] = layout.output.sizes;
  EXPECT_EQ(layout.output.sizes, (Place{2, 6, 3, 5}));
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(y.size()); ++i) {
    const Place at{i / width / height / filters, i / width / height % filters, i / width % height, i % width};
    ASSERT_EQ(output_at(layout, x, packed, at), element(layout.output, y, at)) << i;
  }
}

TEST(LibraryCalls, PaddingGivesTheOutputsSize) {
  const auto layout = convolution_layout(grouped());
  for (std::size_t axis = 0; axis < 2; ++axis) {  // as cuDNN counts
    const std::int64_t padded = layout.image.sizes[axis + 2] + layout.before[axis] + layout.after[axis];
    const std::int64_t reach = layout.dilation[axis] * (layout.weight.sizes[axis + 2] - 1) + 1;
    EXPECT_EQ((padded - reach) / layout.stride[axis] + 1, layout.output.sizes[axis + 2]);
  }
}

TEST(LibraryCalls, AWeightWithChannelsLastComesBack) {
  const FilterSizes filter{3, 4};
  const Floats weight = integers(24, 5);
  Floats packed(24), back(24);
  device::HostGrid::each(nullptr, 24, ChannelsLastFunctor<float>{weight.data(), packed.data(), filter});
  device::HostGrid::each(nullptr, 24, ChannelsFirstFunctor{packed.data(), back.data(), filter});
  EXPECT_EQ(back, weight);
  EXPECT_NE(packed, weight);
}

TEST(LibraryCalls, AWeightThatNeedsNoCopyIsTheSameBothWays) {
  ConvShape s = grouped();
  EXPECT_FALSE(weight_needs_no_copy(s));
  s.groups = 4;  // depthwise
  EXPECT_TRUE(weight_needs_no_copy(s));
  s.groups = 1;
  s.window.height.kernel = s.window.width.kernel = 1;
  EXPECT_TRUE(weight_needs_no_copy(s));
  s = grouped();
  s.channels_last = true;
  EXPECT_TRUE(weight_needs_no_copy(s)) << "it lies as the library wants it";
}

TEST(LibraryAttention, GradientsAreNotTakenWhereTheyAreKnownToBeWrong) {
  const auto holds = [](std::int64_t queries, std::int64_t keys, bool causal) {
    AttentionSizes sizes(
        Attributes({{"heads", std::int64_t{1}}, {"causal", causal}}),
        std::vector<TensorSpec>{{DType::f32, {1, queries, 8}}, {DType::f32, {1, keys, 8}}, {DType::f32, {1, keys, 8}}});
    return library_gradients_hold(sizes);
  };
  for (const std::int64_t keys : {64, 192, 704}) {
    EXPECT_FALSE(holds(keys, keys, false)) << keys;
    EXPECT_TRUE(holds(keys, keys, true)) << keys;
  }
  for (const std::int64_t keys : {63, 65, 128, 256, 1000}) EXPECT_TRUE(holds(7, keys, false)) << keys;
  EXPECT_FALSE(holds(1, 128, false));
}

TEST(LibraryCalls, AttentionsLayoutIsWhereItsOwnKernelReads) {
  const TensorSpec packed{DType::f32, {2, 5, 3 * 6}}, q{DType::f32, {2, 4, 6}}, k{DType::f32, {2, 5, 6}};
  const std::vector<std::vector<TensorSpec>> kinds = {{packed}, {q, k, k}};
  for (const auto& inputs : kinds) {
    const AttentionSizes sizes(Attributes({{"heads", std::int64_t{3}}, {"causal", inputs.size() == 1}}), inputs);
    const Floats one = integers(inputs[0].elements(), 1), other = integers(k.elements(), 2);
    const std::vector<const void*> data = {one.data(), other.data(), other.data()};
    const auto heads = heads_of_inputs<const float>(std::span(data).first(inputs.size()), sizes);
    const auto layout = attention_layout(sizes, DType::bf16);
    EXPECT_EQ(layout.causal, inputs.size() == 1);
    for (const auto& [tensor, seen] : {std::pair(heads.q, layout.q), {heads.k, layout.k}, {heads.v, layout.v}}) {
      EXPECT_EQ(seen.sizes, (Place{2, 3, tensor.positions, 2}));
      for (std::int64_t i = 0; i < 2 * 3 * tensor.positions * 2; ++i) {
        const Place at{i / 2 / tensor.positions / 3, i / 2 / tensor.positions % 3, i / 2 % tensor.positions, i % 2};
        const auto place = std::inner_product(at.begin(), at.end(), seen.strides.begin(), 0L);
        ASSERT_EQ(tensor.data + place, tensor.row(at[0], at[2], at[1] * 2 + at[3])) << i;
      }
    }
  }
}

}  // namespace lockstep::ops
