// avg_pool: the mean of each window, by channel.
//
// A window's pixels are added in row-major order. The gradient visits the windows in the same order.
#include <algorithm>
#include <memory>

#include "core/vectorize.hpp"
#include "ops/elementwise.hpp"
#include "ops/onnx_window.hpp"
#include "ops/window.hpp"

namespace lockstep::ops {

namespace {

/// y = factor * sum of the pixels; x points to the first pixel, rows are `pitch` floats apart.
LOCKSTEP_VECTORIZED void average(const float* x, std::int64_t rows, std::int64_t columns, std::int64_t pitch,
                                 std::int64_t channels, float factor, float* y) {
  for (std::int64_t c = 0; c < channels; ++c) y[c] = 0;
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      const float* pixel = x + i * pitch + j * channels;
      for (std::int64_t c = 0; c < channels; ++c) y[c] += pixel[c];
    }
  }
  for (std::int64_t c = 0; c < channels; ++c) y[c] *= factor;
}

LOCKSTEP_VECTORIZED void spread(const float* dy, std::int64_t rows, std::int64_t columns, std::int64_t pitch,
                                std::int64_t channels, float factor, float* dx) {
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      float* pixel = dx + i * pitch + j * channels;
      for (std::int64_t c = 0; c < channels; ++c) pixel[c] += factor * dy[c];
    }
  }
}

class AvgPoolCpu final : public Kernel {
 public:
  explicit AvgPoolCpu(const KernelRequest& request)
      : s_(pool_shape("avg_pool", *request.attributes, request.inputs[0])),
        input_elements_(request.inputs[0].elements()),
        count_padding_(request.attributes->boolean("count_include_pad")) {}

  void forward(const ForwardCall& call) override {
    each_window([&](std::int64_t pixel, const Taps& rows, const Taps& columns, std::int64_t out, float factor) {
      average(input(call) + pixel, rows.count(), columns.count(), pitch(), s_.image.channels, factor,
              output(call) + out);
    });
  }

  void backward(const BackwardCall& call) override {
    float* dx = input_gradient(call);
    std::fill_n(dx, input_elements_, 0.0F);
    each_window([&](std::int64_t pixel, const Taps& rows, const Taps& columns, std::int64_t out, float factor) {
      spread(output_gradient(call) + out, rows.count(), columns.count(), pitch(), s_.image.channels, factor,
             dx + pixel);
    });
  }

 private:
  std::int64_t pitch() const { return s_.image.width * s_.image.channels; }

  /// Calls functor(element of the first pixel covered, rows, columns, element of the output, 1 / count), in order.
  template <class Functor>
  void each_window(const Functor& functor) const {
    const WindowShape& m = s_.image;
    const std::int64_t taps = s_.window.height.kernel * s_.window.width.kernel;
    std::int64_t out = 0;
    for (std::int64_t n = 0; n < m.batch; ++n) {
      for (std::int64_t i = 0; i < m.out_height; ++i) {
        const Taps rows(s_.window.height, i, m.height);
        for (std::int64_t j = 0; j < m.out_width; ++j, out += m.channels) {
          const Taps columns(s_.window.width, j, m.width);
          const std::int64_t row = n * m.height + rows.origin + rows.first;
          const std::int64_t pixel = row * m.width + columns.origin + columns.first;
          const float count = count_padding_ ? taps : rows.count() * columns.count();
          functor(pixel * m.channels, rows, columns, out, 1 / count);
        }
      }
    }
  }

  PoolShape s_;
  std::int64_t input_elements_;
  bool count_padding_;
};

Signature infer_avg_pool(const Attributes& attributes, std::span<const TensorSpec> inputs) {
  const PoolShape s = pool_shape("avg_pool", attributes, inputs[0]);
  Signature signature;
  signature.outputs.push_back({DType::f32, {s.image.batch, s.image.out_height, s.image.out_width, s.image.channels}});
  return signature;
}

Cost avg_pool_cost(const Attributes& attributes, std::span<const TensorSpec> inputs, const Signature& signature) {
  const PoolShape s = pool_shape("avg_pool", attributes, inputs[0]);
  const double taps = s.window.height.kernel * s.window.width.kernel;
  const double flops = taps * signature.outputs[0].elements();
  return {flops, flops};
}

}  // namespace

OpDef make_avg_pool() {
  OpDef op;
  op.name = "avg_pool";
  op.doc = "the mean of each window, by channel";
  op.attributes = pool_attributes();
  op.attributes.push_back({.name = "count_include_pad",
                           .kind = AttributeKind::boolean,
                           .doc = "padding counts in the mean as pixels of value 0",
                           .default_value = Attribute(true)});
  op.shorthand = "kernel";
  op.infer = infer_avg_pool;
  op.cost = avg_pool_cost;
  op.kernels[DeviceKind::cpu] = kernel_of<AvgPoolCpu>;
  return op;
}

void avg_pool_to_onnx(OnnxScope& scope) {
  auto attributes = onnx_window(window_of("avg_pool", scope.attributes(), true));
  attributes.push_back({"count_include_pad", std::int64_t{scope.attributes().boolean("count_include_pad")}});
  scope.result(scope.add("AveragePool", {scope.input(0, Layout::channels_first)}, std::move(attributes)),
               Layout::channels_first);
}

}  // namespace lockstep::ops
