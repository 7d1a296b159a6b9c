// conv on a Grid: products (device/gpu/product.hpp). Outputs and the image's gradient sum over taps and channels in
// ascending order, the weight's gradient over all pixels of the output, in lanes. Where groups have few channels, as in
// depthwise convolutions, tiles of products would be mostly empty: then a thread, or a group of them, makes an element,
// with the same sum. cuDNN is faster: it has tensor cores. The bias's gradient is a sum over rows, which are pixels. An
// epilogue relu is applied to the sums before they are rounded, which changes no bit; backward writes the gradient that
// passes the relu to the workspace, and continues from there.
#pragma once

#include <algorithm>
#include <memory>

#include "core/filter_sizes.hpp"
#include "device/gpu/grid.hpp"
#include "ops/activations/activations_grid.hpp"
#include "ops/conv/conv_shape.hpp"
#include "ops/conv_product_grid.hpp"
#include "ops/gather_grid.hpp"
#include "ops/product_layer_grid.hpp"
#include "ops/rows_grid.hpp"
#include "ops/window_grid.hpp"

namespace lockstep::ops {

template <class T, class Out>
struct ConvFunctor {
  const T *x = nullptr, *weight = nullptr;
  const float* bias = nullptr;  ///< null: no bias
  Out* y = nullptr;
  ConvShape shape;
  bool relu = false;  ///< the epilogue
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const {
    const WindowShape& image = shape.image;
    const Window& window = shape.window;
    const ConvGroup group(shape);
    const ImagePosition at(i, image.out_height, image.out_width, shape.filters);
    const std::int64_t first_channel = at.channel / group.filters * group.channels;
    float sum = 0;
    for (std::int64_t tap = 0; tap < group.taps; ++tap) {
      const std::int64_t row = pixel_under(window.height, at.row, tap / window.width.kernel);
      const std::int64_t column = pixel_under(window.width, at.column, tap % window.width.kernel);
      if (row < 0 || row >= image.height || column < 0 || column >= image.width) continue;
      const T* pixel = x + ((at.sample * image.height + row) * image.width + column) * image.channels + first_channel;
      for (std::int64_t c = 0; c < group.channels; ++c) sum += pixel[c] * weight[group.weight(at.channel, c, tap)];
    }
    if (bias != nullptr) sum += bias[at.channel];
    y[i] = relu ? Relu::of(sum) : sum;
  }
};

template <class T, class In>
struct ConvInputGradientFunctor {
  const T *dy = nullptr, *weight = nullptr;
  In* dx = nullptr;
  ConvShape shape;
  const float* bias = nullptr;  ///< of conv_transpose, whose output this is; null: none
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const {
    const WindowShape& image = shape.image;
    const Window& window = shape.window;
    const ConvGroup group(shape);
    const ImagePosition at(i, image.height, image.width, image.channels);
    const std::int64_t channel = at.channel % group.channels, first = at.channel / group.channels * group.filters;
    float sum = 0;
    for (std::int64_t tap = 0; tap < group.taps; ++tap) {
      const std::int64_t row = window_over(window.height, at.row, tap / window.width.kernel, image.out_height);
      const std::int64_t column = window_over(window.width, at.column, tap % window.width.kernel, image.out_width);
      if (row < 0 || column < 0) continue;
      const T* pixel = dy + ((at.sample * image.out_height + row) * image.out_width + column) * shape.filters;
      for (std::int64_t f = first; f < first + group.filters; ++f) {
        sum += pixel[f] * weight[group.weight(f, channel, tap)];
      }
    }
    if (bias != nullptr) sum += bias[at.channel];
    dx[i] = sum;
  }
};

template <class T>
struct ConvWeightGradientFunctor {
  const T *x = nullptr, *dy = nullptr;
  float* dw = nullptr;
  ConvShape shape;
  template <class Lanes>
  LOCKSTEP_HOST_DEVICE void operator()(Lanes& lanes, std::int64_t i) const {
    const WindowShape image = shape.image;
    const WindowAxis height = shape.window.height, width = shape.window.width;
    const ConvGroup group(shape);
    const std::int64_t filter = i / (group.taps * group.channels), of_filter = i % (group.taps * group.channels);
    const std::int64_t tap = group.channels_last ? of_filter / group.channels : of_filter % group.taps;
    const std::int64_t of_group = group.channels_last ? of_filter % group.channels : of_filter / group.taps;
    const std::int64_t channel = filter / group.filters * group.channels + of_group, filters = shape.filters;
    const T *xs = x, *dys = dy;
    const std::int64_t pixels = image.batch * image.out_height * image.out_width;
    const float sum = lanes.sum(pixels, [=](std::int64_t pixel) -> float {
      const ImagePosition at(pixel, image.out_height, image.out_width, std::int64_t{1});
      const std::int64_t row = pixel_under(height, at.row, tap / width.kernel);
      const std::int64_t column = pixel_under(width, at.column, tap % width.kernel);
      if (row < 0 || row >= image.height || column < 0 || column >= image.width) return 0.0F;
      const std::int64_t under = (at.sample * image.height + row) * image.width + column;
      return dys[pixel * filters + filter] * xs[under * image.channels + channel];
    });
    float* to = dw + i;
    lanes.once([=] { *to = sum; });
  }
};

/// Whether groups are too small for tiles.
inline bool has_small_groups(const ConvShape& s) {
  constexpr std::int64_t kFew = 8;
  const ConvGroup group(s);
  return s.groups > 1 && std::min(group.channels, group.filters) < kFew;
}

/// y = x * weight + bias, and relu of it if wanted. `bias`: null if there is none.
template <class Grid, class T, class Out>
void launch_conv(GpuStream* stream, const ConvShape& s, const T* x, const T* weight, const float* bias, Out* y,
                 bool relu = false) {
  const std::int64_t pixels = s.image.batch * s.image.out_height * s.image.out_width;
  if (has_small_groups(s)) {
    return Grid::each(stream, pixels * s.filters, ConvFunctor<T, Out>{x, weight, bias, y, s, relu});
  }
  const ConvGroup group(s);
  Grid::product(stream,
                device::product_of<device::SumOrder::ascending>(
                    s.groups, pixels, group.filters, group.taps * group.channels, PixelsUnderWindows<T, true>(x, s),
                    ConvWeights<T, true>(weight, s), StorePixel<Out>{bias, y, s.filters, group.filters, relu}));
}

template <class Grid, class T, class In>
void launch_conv_input_gradient(GpuStream* stream, const ConvShape& s, const T* dy, const T* weight, In* dx,
                                const float* bias = nullptr) {
  const std::int64_t pixels = s.image.batch * s.image.height * s.image.width;
  if (has_small_groups(s)) {
    return Grid::each(stream, pixels * s.image.channels, ConvInputGradientFunctor<T, In>{dy, weight, dx, s, bias});
  }
  const ConvGroup group(s);
  Grid::product(
      stream, device::product_of<device::SumOrder::ascending>(
                  s.groups, pixels, group.channels, group.taps * group.filters, WindowsOverPixels<T>(dy, s),
                  ConvWeights<T, false>(weight, s), StorePixel<In>{bias, dx, s.image.channels, group.channels, false}));
}

template <class Grid, class T>
void launch_conv_weight_gradient(GpuStream* stream, const ConvShape& s, const T* x, const T* dy, float* dw) {
  const ConvGroup group(s);
  if (has_small_groups(s)) {
    return Grid::rows(stream, s.filters * group.taps * group.channels, ConvWeightGradientFunctor<T>{x, dy, dw, s});
  }
  Grid::product(stream, device::product_of<device::SumOrder::lanes>(
                            s.groups, group.filters, group.taps * group.channels,
                            s.image.batch * s.image.out_height * s.image.out_width, FiltersOfPixels<T>(dy, s),
                            PixelsUnderWindows<T, false>(x, s), StoreConvWeight{dw, group, Divisor(group.channels)}));
}

template <class Grid, class T, class In, class Out>
class ConvProducts final : public LayerProducts {
 public:
  explicit ConvProducts(const KernelRequest& request)
      : shape_(conv_shape(*request.attributes, request.inputs[0])),
        relu_(request.epilogue == "relu"),
        outputs_(request.outputs[0].elements()) {
    shape_.channels_last = request.channels_last;
  }

  std::size_t workspace_bytes() const override {
    return shape_.bias ? device::row_sums_bytes(pixels(), shape_.filters) : 0;
  }

  void output(const ProductCall& call, const void* x, const void* weight, const float* bias, void* y) override {
    launch_conv<Grid>(call.stream, shape_, elements(x), elements(weight), bias, static_cast<Out*>(y), relu_);
  }
  void input_gradient(const ProductCall& call, const void* dy, const void* weight, void* dx) override {
    launch_conv_input_gradient<Grid>(call.stream, shape_, elements(dy), elements(weight), static_cast<In*>(dx));
  }
  void weight_gradient(const ProductCall& call, const void* x, const void* dy, float* dw) override {
    launch_conv_weight_gradient<Grid>(call.stream, shape_, elements(x), elements(dy), dw);
  }
  void bias_gradient(const ProductCall& call, const void* dy, float* db) override {
    launch_row_sums<Grid>(call.stream, device::RowElements<T>{elements(dy), shape_.filters}, pixels(), shape_.filters,
                          db, static_cast<float*>(call.workspace));
  }

 private:
  static const T* elements(const void* operand) { return static_cast<const T*>(operand); }
  std::int64_t pixels() const { return outputs_ / shape_.filters; }
  ConvShape shape_;
  bool relu_;
  std::int64_t outputs_;  ///< elements
};

template <class Grid>
std::unique_ptr<LayerProducts> make_conv_products(const KernelRequest& request) {
  return make_for_products(
      request,
      [&]<class T, class In, class Out>(T /*operands*/, In /*x*/, Out /*y*/) -> std::unique_ptr<LayerProducts> {
        return std::make_unique<ConvProducts<Grid, T, In, Out>>(request);
      });
}

/// Its products apply the relu to the output, and get the gradient before the relu.
template <class Grid>
class ConvLayer final : public ProductLayer<Grid> {
 public:
  ConvLayer(const KernelRequest& request, std::unique_ptr<LayerProducts> products)
      : ProductLayer<Grid>(request, std::move(products)),
        relu_(request.epilogue == "relu"),
        compute_type_(request.compute_type),
        output_(request.outputs[0]) {}

 private:
  const void* read_gradient(const BackwardCall& call, const ProductOperand<Grid>& dy) override {
    if (!relu_) return ProductLayer<Grid>::read_gradient(call, dy);
    void* const to = dy.copy(call.workspace);
    device::with_element(compute_type_, [&]<class T>(T /*element*/) {
      output_.dtype == compute_type_ ? launch<T, T>(call, to) : launch<float, T>(call, to);
    });
    return to;
  }
  template <class T, class To>
  void launch(const BackwardCall& call, void* to) const {
    const auto *y = static_cast<const T*>(call.outputs[0]), *dy = static_cast<const T*>(call.output_gradients[0]);
    Grid::each(stream_of(call), output_.elements(),
               MapPairFunctor<ActivationGradientOf<Relu>, T, T, To>{y, dy, static_cast<To*>(to)});
  }

  bool relu_;
  DType compute_type_;
  TensorSpec output_;
};

/// Returns null for null.
template <class Grid>
std::unique_ptr<Kernel> make_conv_layer(const KernelRequest& request, std::unique_ptr<LayerProducts> products) {
  if (products == nullptr) return nullptr;
  return std::make_unique<ConvLayer<Grid>>(request, std::move(products));
}

template <class Grid>
std::unique_ptr<Kernel> make_conv_grid(const KernelRequest& request) {
  return make_conv_layer<Grid>(request, make_conv_products<Grid>(request));
}

// Conversions of a weight in the model's layout to channels last and back, which cuDNN leaves to us.
/// weight -> packed, and packed -> weight.
template <class T>
using ChannelsLastFunctor = GatherFunctor<FilterSizes, T>;
using ChannelsFirstFunctor = ScatterFunctor<FilterSizes, float>;

}  // namespace lockstep::ops
