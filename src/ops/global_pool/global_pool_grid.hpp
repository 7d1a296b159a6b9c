// global_pool, mean and max on a Grid, one thread per channel of a sample, which visits the pixels in order; of equal
// maxima the first one wins.
#pragma once

#include <memory>

#include "device/gpu/grid.hpp"
#include "ops/element_grid.hpp"
#include "ops/elementwise.hpp"
#include "ops/global_pool/pixel_shape.hpp"

namespace lockstep::ops {

template <class T>
struct MeanOfPixelsFunctor {
  const T* x;
  T* y;
  PixelShape shape;
  Lengths counts;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const {
    const T* pixel = x + shape.first(i);
    const std::int64_t count = counts.of(i / shape.channels);
    float sum = 0;
    for (std::int64_t p = 0; p < count; ++p) sum += pixel[p * shape.channels];
    y[i] = sum * (1.0F / count);
  }
};

template <class T>
struct MeanGradientFunctor {
  const T* dy;
  T* dx;
  PixelShape shape;
  Lengths counts;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t count = counts.of(i / shape.channels);
    const float share = dy[i] * (1.0F / count);
    for (std::int64_t p = 0; p < shape.pixels; ++p) dx[shape.first(i) + p * shape.channels] = p < count ? share : 0.0F;
  }
};

template <class T>
struct LargestOfPixelsFunctor {
  const T* x;
  T* y;
  std::int32_t* winner;  ///< null in inference
  PixelShape shape;
  Lengths counts;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const {
    const T* pixel = x + shape.first(i);
    const std::int64_t count = counts.of(i / shape.channels);
    float best = pixel[0];
    std::int32_t place = 0;
    for (std::int64_t p = 1; p < count; ++p) {
      const float value = pixel[p * shape.channels];
      if (!(value > best || value != value)) continue;  // a NaN wins, so that it is not lost
      best = value;
      place = p;
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
  GlobalPoolGrid(const KernelRequest& request, bool maximum, const PixelShape& shape)
      : maximum_(maximum),
        training_(request.mode == Mode::training),
        outputs_(request.outputs[0].elements()),
        samples_(request.outputs[0].shape[0]),
        shape_(shape) {}

  void forward(const ForwardCall& call) override {
    const Lengths counts = pixel_counts(call, shape_);
    if (maximum_) {
      auto* winner = training_ ? static_cast<std::int32_t*>(call.saved[0]) : nullptr;
      Grid::each(stream_of(call), outputs_,
                 LargestOfPixelsFunctor<T>{input<T>(call), output<T>(call), winner, shape_, counts});
    } else {
      Grid::each(stream_of(call), outputs_, MeanOfPixelsFunctor<T>{input<T>(call), output<T>(call), shape_, counts});
      if (counts.data == nullptr || !training_) return;
      Grid::each(stream_of(call), samples_, KeepLengthsFunctor{counts.data, static_cast<std::int32_t*>(call.saved[0])});
    }
  }

  void backward(const BackwardCall& call) override {
    const T* dy = output_gradient<T>(call);
    T* dx = input_gradient<T>(call);
    if (maximum_) {
      const auto* winner = static_cast<const std::int32_t*>(call.saved[0]);
      Grid::each(stream_of(call), outputs_, LargestGradientFunctor<T>{dy, winner, dx, shape_});
    } else {
      Grid::each(stream_of(call), outputs_, MeanGradientFunctor<T>{dy, dx, shape_, pixel_counts(call, shape_)});
    }
  }

 private:
  bool maximum_, training_;
  std::int64_t outputs_, samples_;
  PixelShape shape_;
};

template <class Grid>
std::unique_ptr<Kernel> make_pool_of(const KernelRequest& request, bool maximum, const PixelShape& shape) {
  return make_for_elements(request, [&]<class T>(T /*element*/) {
    return std::make_unique<GlobalPoolGrid<Grid, T>>(request, maximum, shape);
  });
}

template <class Grid>
std::unique_ptr<Kernel> make_global_pool_grid(const KernelRequest& request) {
  return make_pool_of<Grid>(request, request.attributes->text("kind") == "max", shape_of_pixels(request));
}

template <class Grid>
std::unique_ptr<Kernel> make_mean_grid(const KernelRequest& request) {
  return make_pool_of<Grid>(request, false, shape_over_axis("mean", request));
}

template <class Grid>
std::unique_ptr<Kernel> make_max_grid(const KernelRequest& request) {
  return make_pool_of<Grid>(request, true, shape_over_axis("max", request));
}

}  // namespace lockstep::ops
