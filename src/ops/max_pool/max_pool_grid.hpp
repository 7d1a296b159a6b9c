// max_pool on a Grid, one thread per element: of the output in forward, of the input in backward, where it gathers, in
// order, from the windows that it won. The rules are those of max_pool_cpu.cpp.
#pragma once

#include <memory>

#include "device/gpu/grid.hpp"
#include "ops/element_grid.hpp"
#include "ops/elementwise.hpp"
#include "ops/window.hpp"
#include "ops/window_grid.hpp"

namespace lockstep::ops {

template <class T>
struct MaxPoolFunctor {
  const T* x = nullptr;
  T* y = nullptr;
  std::uint8_t* winner = nullptr;  ///< null in inference
  PoolShape shape;
  ImageDivisors out;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const {
    const WindowShape& image = shape.image;
    const ImagePosition at = out.position(i);
    const Taps rows(shape.window.height, at.row, image.height), columns(shape.window.width, at.column, image.width);
    float best = 0;
    std::int64_t winning_tap = -1;
    for (std::int64_t tap_row = rows.first; tap_row < rows.last; ++tap_row) {
      for (std::int64_t tap_column = columns.first; tap_column < columns.last; ++tap_column) {
        const std::int64_t row = at.sample * image.height + rows.origin + tap_row;
        const float value = x[(row * image.width + columns.origin + tap_column) * image.channels + at.channel];
        if (winning_tap >= 0 && !(value > best || value != value)) continue;  // a NaN wins, so that it is not lost
        best = value;
        winning_tap = tap_row * shape.window.width.kernel + tap_column;
      }
    }
    y[i] = best;
    if (winner != nullptr) winner[i] = static_cast<std::uint8_t>(winning_tap);
  }
};

template <class T>
struct MaxPoolGradientFunctor {
  const T* dy = nullptr;
  const std::uint8_t* winner = nullptr;
  T* dx = nullptr;
  CoveringWindows windows;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const {
    float sum = 0;
    windows.for_windows_over(i, [&](const CoveringWindow& window) {
      if (winner[window.output] == window.tap) sum += dy[window.output];
    });
    dx[i] = sum;
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
    Grid::each(stream_of(call), outputs_,
               MaxPoolFunctor<T>{input<T>(call), output<T>(call), winner, shape_,
                                 ImageDivisors(image.out_height, image.out_width, image.channels)});
  }

  void backward(const BackwardCall& call) override {
    const auto* winner = static_cast<const std::uint8_t*>(call.saved[0]);
    Grid::each(stream_of(call), inputs_,
               MaxPoolGradientFunctor<T>{output_gradient<T>(call), winner, input_gradient<T>(call),
                                         CoveringWindows(shape_.window, shape_.image)});
  }

 private:
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
