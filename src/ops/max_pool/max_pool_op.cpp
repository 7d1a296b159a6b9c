// max_pool: the largest pixel of each window, by channel; padding never wins.
//
// Forward saves, per output, the number of the winning tap (row-major in the window): the first one of equals. A NaN
// wins, so that it is not lost.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "core/vectorize.hpp"
#include "lockstep/error.hpp"
#include "ops/elementwise.hpp"
#include "ops/onnx_window.hpp"
#include "ops/window.hpp"

namespace lockstep::ops {

namespace {

LOCKSTEP_VECTORIZED void begin_window(const float* x, float* best, std::uint8_t* winner, std::uint8_t tap,
                                      std::int64_t channels) {
  for (std::int64_t c = 0; c < channels; ++c) best[c] = x[c];
  for (std::int64_t c = 0; c < channels; ++c) winner[c] = tap;
}

LOCKSTEP_VECTORIZED void compare(const float* x, float* best, std::uint8_t* winner, std::uint8_t tap,
                                 std::int64_t channels) {
  for (std::int64_t c = 0; c < channels; ++c) {
    const bool wins = x[c] > best[c] || x[c] != x[c];
    best[c] = wins ? x[c] : best[c];
    winner[c] = wins ? tap : winner[c];
  }
}

LOCKSTEP_VECTORIZED void add_to_winner(const float* dy, const std::uint8_t* winner, float* dx, std::uint8_t tap,
                                       std::int64_t channels) {
  for (std::int64_t c = 0; c < channels; ++c) dx[c] += winner[c] == tap ? dy[c] : 0.0F;
}

class MaxPoolCpu final : public Kernel {
 public:
  explicit MaxPoolCpu(const KernelRequest& request)
      : s_(pool_shape("max_pool", *request.attributes, request.inputs[0])),
        training_(request.mode == Mode::training),
        input_elements_(request.inputs[0].elements()) {}

  std::size_t workspace_bytes() const override { return training_ ? 0 : static_cast<std::size_t>(s_.image.channels); }

  void forward(const ForwardCall& call) override {
    const std::int64_t channels = s_.image.channels;
    auto* winners = static_cast<std::uint8_t*>(training_ ? call.saved[0] : call.workspace);
    each_window([&](std::int64_t out, const Taps& rows, const Taps& columns, std::int64_t sample) {
      float* best = output(call) + out * channels;
      std::uint8_t* winner = training_ ? winners + out * channels : winners;
      bool first = true;
      each_tap(rows, columns, sample, [&](std::uint8_t tap, std::int64_t pixel) {
        const float* x = input(call) + pixel * channels;
        first ? begin_window(x, best, winner, tap, channels) : compare(x, best, winner, tap, channels);
        first = false;
      });
    });
  }

  void backward(const BackwardCall& call) override {
    const std::int64_t channels = s_.image.channels;
    const auto* winners = static_cast<const std::uint8_t*>(call.saved[0]);
    float* dx = input_gradient(call);
    std::fill_n(dx, input_elements_, 0.0F);
    each_window([&](std::int64_t out, const Taps& rows, const Taps& columns, std::int64_t sample) {
      each_tap(rows, columns, sample, [&](std::uint8_t tap, std::int64_t pixel) {
        add_to_winner(output_gradient(call) + out * channels, winners + out * channels, dx + pixel * channels, tap,
                      channels);
      });
    });
  }

 private:
  /// Calls functor(number of the output pixel, rows, columns, sample), in order.
  template <class Functor>
  void each_window(const Functor& functor) const {
    std::int64_t out = 0;
    for (std::int64_t n = 0; n < s_.image.batch; ++n) {
      for (std::int64_t i = 0; i < s_.image.out_height; ++i) {
        const Taps rows(s_.window.height, i, s_.image.height);
        for (std::int64_t j = 0; j < s_.image.out_width; ++j) {
          functor(out++, rows, Taps(s_.window.width, j, s_.image.width), n);
        }
      }
    }
  }

  /// Calls functor(tap, number of the input pixel), row-major.
  template <class Functor>
  void each_tap(const Taps& rows, const Taps& columns, std::int64_t sample, const Functor& functor) const {
    for (std::int64_t y = rows.first; y < rows.last; ++y) {
      const std::int64_t row = (sample * s_.image.height + rows.origin + y) * s_.image.width + columns.origin;
      for (std::int64_t x = columns.first; x < columns.last; ++x) {
        functor(static_cast<std::uint8_t>(y * s_.window.width.kernel + x), row + x);
      }
    }
  }

  PoolShape s_;
  bool training_;
  std::int64_t input_elements_;
};

Signature infer_max_pool(const Attributes& attributes, std::span<const TensorSpec> inputs) {
  const PoolShape s = pool_shape("max_pool", attributes, inputs[0]);
  const std::int64_t taps = s.window.height.kernel * s.window.width.kernel;
  if (taps > 256) {  // the winning tap is stored in a byte
    throw Error(ExitCode::configuration,
                fmt::format("max_pool: expected a kernel of at most 256 pixels, found {}", taps));
  }
  const Shape out{s.image.batch, s.image.out_height, s.image.out_width, s.image.channels};
  Signature signature;
  signature.outputs.push_back({DType::f32, out});
  signature.saved.push_back({DType::u8, out});
  return signature;
}

Cost max_pool_cost(const Attributes& attributes, std::span<const TensorSpec> inputs, const Signature& signature) {
  const PoolShape s = pool_shape("max_pool", attributes, inputs[0]);
  const double n = signature.outputs[0].elements();
  return {n * (s.window.height.kernel * s.window.width.kernel), n};
}

}  // namespace

OpDef make_max_pool() {
  OpDef op;
  op.name = "max_pool";
  op.doc = "the maximum of each window, by channel";
  op.attributes = pool_attributes();
  op.shorthand = "kernel";
  op.infer = infer_max_pool;
  op.cost = max_pool_cost;
  op.kernels[DeviceKind::cpu] = kernel_of<MaxPoolCpu>;
  return op;
}

void max_pool_to_onnx(OnnxScope& scope) {
  const auto attributes = onnx_window(window_of("max_pool", scope.attributes(), true));
  scope.result(scope.add("MaxPool", {scope.input(0, Layout::channels_first)}, attributes), Layout::channels_first);
}

}  // namespace lockstep::ops
