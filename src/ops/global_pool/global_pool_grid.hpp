// global_pool on a Grid, one thread per channel of a sample, which visits the pixels in order; of equal maxima the
// first one wins.
#pragma once

#include <memory>

#include "device/gpu/grid.hpp"
#include "ops/element_grid.hpp"
#include "ops/elementwise.hpp"

namespace lockstep::ops {

/// x is [batch, pixels, channels].
struct PixelShape {
  std::int64_t pixels, channels;
  /// Pixel 0 of output i.
  [[nodiscard]] LOCKSTEP_HOST_DEVICE std::int64_t first(std::int64_t i) const {
    return i / channels * pixels * channels + i % channels;
  }
};

template <class T>
struct MeanOfPixelsFunctor {
  const T* x;
  T* y;
  PixelShape shape;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const {
    const T* pixel = x + shape.first(i);
    float sum = 0;
    for (std::int64_t p = 0; p < shape.pixels; ++p) sum += pixel[p * shape.channels];
    y[i] = sum * (1.0F / static_cast<float>(shape.pixels));
  }
};

template <class T>
struct MeanGradientFunctor {
  const T* dy;
  T* dx;
  PixelShape shape;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const {
    const float share = dy[i] * (1.0F / static_cast<float>(shape.pixels));
    for (std::int64_t p = 0; p < shape.pixels; ++p) dx[shape.first(i) + p * shape.channels] = share;
  }
};

template <class T>
struct LargestOfPixelsFunctor {
  const T* x;
  T* y;
  std::int32_t* winner;  ///< null in inference
  PixelShape shape;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const {
    const T* pixel = x + shape.first(i);
    float best = pixel[0];
    std::int32_t place = 0;
    for (std::int64_t p = 1; p < shape.pixels; ++p) {
      const float value = pixel[p * shape.channels];
      if (!(value > best || value != value)) continue;  // a NaN wins, so that it is not lost
      best = value;
      place = static_cast<std::int32_t>(p);
    }
    y[i] = best;
    if (winner != nullptr) winner[i] = place;
  }
};

template <class T>
struct LargestGradientFunctor {
  const T* dy;
  const std::int32_t* winner;
  T* dx;
  PixelShape shape;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const {
    for (std::int64_t p = 0; p < shape.pixels; ++p) {
      dx[shape.first(i) + p * shape.channels] = p == winner[i] ? dy[i] : 0.0F;
    }
  }
};

template <class Grid, class T>
class GlobalPoolGrid final : public Kernel {
 public:
  explicit GlobalPoolGrid(const KernelRequest& request)
      : maximum_(request.attributes->text("kind") == "max"),
        training_(request.mode == Mode::training),
        outputs_(request.outputs[0].elements()),
        shape_{1, request.outputs[0].shape[1]} {
    const Shape& x = request.inputs[0].shape;
    for (std::size_t i = 1; i + 1 < x.size(); ++i) shape_.pixels *= x[i];
  }

  void forward(const ForwardCall& call) override {
    if (maximum_) {
      auto* winner = training_ ? static_cast<std::int32_t*>(call.saved[0]) : nullptr;
      Grid::each(stream_of(call), outputs_, LargestOfPixelsFunctor<T>{input<T>(call), output<T>(call), winner, shape_});
    } else {
      Grid::each(stream_of(call), outputs_, MeanOfPixelsFunctor<T>{input<T>(call), output<T>(call), shape_});
    }
  }

  void backward(const BackwardCall& call) override {
    const T* dy = output_gradient<T>(call);
    T* dx = input_gradient<T>(call);
    if (maximum_) {
      const auto* winner = static_cast<const std::int32_t*>(call.saved[0]);
      Grid::each(stream_of(call), outputs_, LargestGradientFunctor<T>{dy, winner, dx, shape_});
    } else {
      Grid::each(stream_of(call), outputs_, MeanGradientFunctor<T>{dy, dx, shape_});
    }
  }

 private:
  bool maximum_, training_;
  std::int64_t outputs_;
  PixelShape shape_;
};

template <class Grid>
std::unique_ptr<Kernel> make_global_pool_grid(const KernelRequest& request) {
  return make_for_elements(request,
                           [&]<class T>(T /*element*/) { return std::make_unique<GlobalPoolGrid<Grid, T>>(request); });
}

}  // namespace lockstep::ops
