// max_pool on a Grid, one thread per element, or per pack of channels: of the output in forward, of the input in
// backward, where it gathers, in order, from the windows that it won. The rules are those of max_pool_cpu.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

#include "device/gpu/grid.hpp"
#include "device/gpu/pack.hpp"
#include "ops/element_grid.hpp"
#include "ops/elementwise.hpp"
#include "ops/window.hpp"
#include "ops/window_grid.hpp"

namespace lockstep::ops {

/// Of kCount neighbouring channels: where all of a pixel's channels are packs, places are computed once for a pack.
template <class T, int kCount>
struct MaxPoolFunctor {
  const T* x = nullptr;
  T* y = nullptr;
  std::uint8_t* winner = nullptr;  ///< null in inference
  PoolShape shape;
  ImageDivisors out;  ///< its channels are packs
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const {
    const WindowShape& image = shape.image;
    const ImagePosition at = out.position(i);
    const Taps rows(shape.window.height, at.row, image.height), columns(shape.window.width, at.column, image.width);
    float best[kCount] = {};
    int winning_tap[kCount];
    LOCKSTEP_UNROLL
    for (int c = 0; c < kCount; ++c) winning_tap[c] = -1;
    for (std::int64_t tap_row = rows.first; tap_row < rows.last; ++tap_row) {
      for (std::int64_t tap_column = columns.first; tap_column < columns.last; ++tap_column) {
        const std::int64_t row = at.sample * image.height + rows.origin + tap_row;
        const std::int64_t pixel = row * image.width + columns.origin + tap_column;
        const auto values = device::read_pack<kCount>(x + pixel * image.channels + at.channel * kCount);
        const int tap = tap_row * shape.window.width.kernel + tap_column;
        LOCKSTEP_UNROLL
        for (int c = 0; c < kCount; ++c) {
          const float value = values.at[c];
          const bool wins = winning_tap[c] < 0 || value > best[c] || value != value;  // a NaN wins: it is not lost
          best[c] = wins ? value : best[c];
          winning_tap[c] = wins ? tap : winning_tap[c];
        }
      }
    }
    device::Pack<T, kCount> to;
    LOCKSTEP_UNROLL
    for (int c = 0; c < kCount; ++c) to.at[c] = best[c];
    device::write_pack(y + i * kCount, to);
    if (winner == nullptr) return;
    device::Pack<std::uint8_t, kCount> taps;
    LOCKSTEP_UNROLL
    for (int c = 0; c < kCount; ++c) taps.at[c] = static_cast<std::uint8_t>(winning_tap[c]);
    device::write_pack(winner + i * kCount, taps);
  }
};

/// The same for backward.
template <class T, int kCount>
struct MaxPoolGradientFunctor {
  const T* dy = nullptr;
  const std::uint8_t* winner = nullptr;
  T* dx = nullptr;
  CoveringWindows windows;  ///< its channels are packs
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const {
    float sum[kCount] = {};
    windows.for_windows_over(i, [&](const CoveringWindow& window) {
      const auto winners = device::read_pack<kCount>(winner + window.output * kCount);
      const auto gradients = device::read_pack<kCount>(dy + window.output * kCount);
      LOCKSTEP_UNROLL
      for (int c = 0; c < kCount; ++c) sum[c] += winners.at[c] == window.tap ? float{gradients.at[c]} : 0.0F;
    });
    device::Pack<T, kCount> to;
    LOCKSTEP_UNROLL
    for (int c = 0; c < kCount; ++c) to.at[c] = sum[c];
    device::write_pack(dx + i * kCount, to);
  }
};

template <class Grid, class T>
class MaxPoolGrid final : public Kernel {
 public:
  explicit MaxPoolGrid(const KernelRequest& request)
      : shape_(pool_shape("max_pool", *request.attributes, request.inputs[0])),
        training_(request.mode == Mode::training),
        inputs_(request.inputs[0].elements()),
        outputs_(request.outputs[0].elements()) {}

  void forward(const ForwardCall& call) override {
    auto* winner = training_ ? static_cast<std::uint8_t*>(call.saved[0]) : nullptr;
    const WindowShape& image = shape_.image;
    in_packs([&]<int kCount>(std::integral_constant<int, kCount> /*count*/) {
      Grid::each(stream_of(call), outputs_ / kCount,
                 MaxPoolFunctor<T, kCount>{input<T>(call), output<T>(call), winner, shape_,
                                           ImageDivisors(image.out_height, image.out_width, image.channels / kCount)});
    });
  }

  void backward(const BackwardCall& call) override {
    const auto* winner = static_cast<const std::uint8_t*>(call.saved[0]);
    in_packs([&]<int kCount>(std::integral_constant<int, kCount> /*count*/) {
      WindowShape packs = shape_.image;
      packs.channels /= kCount;
      Grid::each(stream_of(call), inputs_ / kCount,
                 MaxPoolGradientFunctor<T, kCount>{output_gradient<T>(call), winner, input_gradient<T>(call),
                                                   CoveringWindows(shape_.window, packs)});
    });
  }

 private:
  /// Calls launch(elements of a pack).
  template <class Launch>
  void in_packs(const Launch& launch) const {
    constexpr int kCount = device::kPacked<T>;
    if (shape_.image.channels % kCount == 0) {
      launch(std::integral_constant<int, kCount>());
    } else {
      launch(std::integral_constant<int, 1>());
    }
  }

  PoolShape shape_;
  bool training_;
  std::int64_t inputs_, outputs_;  ///< numbers of elements
};

template <class Grid>
std::unique_ptr<Kernel> make_max_pool_grid(const KernelRequest& request) {
  return make_for_elements(request,
                           [&]<class T>(T /*element*/) { return std::make_unique<MaxPoolGrid<Grid, T>>(request); });
}

}  // namespace lockstep::ops
