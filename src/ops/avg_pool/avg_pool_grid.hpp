// avg_pool on a Grid, one thread per element: of the output in forward, of the input in backward, where it gathers from
// its windows in order.
#pragma once

#include <memory>

#include "device/gpu/grid.hpp"
#include "ops/element_grid.hpp"
#include "ops/elementwise.hpp"
#include "ops/window.hpp"
#include "ops/window_grid.hpp"

namespace lockstep::ops {

struct AvgPoolShape {
  PoolShape pool;
  bool count_padding;
  /// 1 / (number of pixels that count in a window with these taps).
  LOCKSTEP_HOST_DEVICE float factor(const Taps& rows, const Taps& columns) const {
    const std::int64_t all = pool.window.height.kernel * pool.window.width.kernel;
    return 1 / static_cast<float>(count_padding ? all : rows.count() * columns.count());
  }
};

template <class T>
struct AvgPoolFunctor {
  const T* x = nullptr;
  T* y = nullptr;
  AvgPoolShape shape;
  ImageDivisors out;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const {
    const WindowShape& image = shape.pool.image;
    const Window& window = shape.pool.window;
    const ImagePosition at = out.position(i);
    const Taps rows(window.height, at.row, image.height), columns(window.width, at.column, image.width);
    float sum = 0;
    for (std::int64_t tap_row = rows.first; tap_row < rows.last; ++tap_row) {
      for (std::int64_t tap_column = columns.first; tap_column < columns.last; ++tap_column) {
        const std::int64_t row = at.sample * image.height + rows.origin + tap_row;
        sum += x[(row * image.width + columns.origin + tap_column) * image.channels + at.channel];
      }
    }
    y[i] = sum * shape.factor(rows, columns);
  }
};

template <class T>
struct AvgPoolGradientFunctor {
  const T* dy = nullptr;
  T* dx = nullptr;
  AvgPoolShape shape;
  CoveringWindows windows;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const {
    const WindowShape& image = shape.pool.image;
    const Window& window = shape.pool.window;
    float sum = 0;
    windows.for_windows_over(i, [&](const CoveringWindow& covering) {
      const Taps rows(window.height, covering.row, image.height), columns(window.width, covering.column, image.width);
      sum += shape.factor(rows, columns) * dy[covering.output];
    });
    dx[i] = sum;
  }
};

template <class Grid, class T>
class AvgPoolGrid final : public Kernel {
 public:
  explicit AvgPoolGrid(const KernelRequest& request)
      : shape_{pool_shape("avg_pool", *request.attributes, request.inputs[0]),
               request.attributes->boolean("count_include_pad")},
        inputs_(request.inputs[0].elements()),
        outputs_(request.outputs[0].elements()) {}

  void forward(const ForwardCall& call) override {
    const WindowShape& image = shape_.pool.image;
    Grid::each(stream_of(call), outputs_,
               AvgPoolFunctor<T>{input<T>(call), output<T>(call), shape_,
                                 ImageDivisors(image.out_height, image.out_width, image.channels)});
  }
  void backward(const BackwardCall& call) override {
    Grid::each(stream_of(call), inputs_,
               AvgPoolGradientFunctor<T>{output_gradient<T>(call), input_gradient<T>(call), shape_,
                                         CoveringWindows(shape_.pool.window, shape_.pool.image)});
  }

 private:
  AvgPoolShape shape_;
  std::int64_t inputs_, outputs_;  ///< numbers of elements
};

template <class Grid>
std::unique_ptr<Kernel> make_avg_pool_grid(const KernelRequest& request) {
  return make_for_elements(request,
                           [&]<class T>(T /*element*/) { return std::make_unique<AvgPoolGrid<Grid, T>>(request); });
}

}  // namespace lockstep::ops
