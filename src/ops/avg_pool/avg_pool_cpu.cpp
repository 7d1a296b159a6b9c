// A window's pixels are added in row-major order. The gradient goes through the windows in the same order.
#include <algorithm>
#include <memory>

#include "core/vectorize.hpp"
#include "ops/elementwise.hpp"
#include "ops/pool_shape.hpp"

namespace lockstep::ops {

namespace {

/// y = factor * sum of the pixels; x points at the first, rows are `pitch` floats apart.
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
  [[nodiscard]] std::int64_t pitch() const { return s_.image.width * s_.image.channels; }

  /// functor(element of the first pixel covered, rows, columns, element of the output, 1 / count), in order.
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
          const auto count = static_cast<float>(count_padding_ ? taps : rows.count() * columns.count());
          functor(pixel * m.channels, rows, columns, out, 1 / count);
        }
      }
    }
  }

  PoolShape s_;
  std::int64_t input_elements_;
  bool count_padding_;
};

}  // namespace

std::unique_ptr<Kernel> make_avg_pool_cpu(const KernelRequest& request) {
  return std::make_unique<AvgPoolCpu>(request);
}

}  // namespace lockstep::ops
