// class_token on a Grid. The weight's gradient adds sample after sample.
#pragma once

#include <memory>

#include "core/divisor.hpp"
#include "device/gpu/grid.hpp"
#include "ops/element_grid.hpp"
#include "ops/elementwise.hpp"
#include "ops/gather_grid.hpp"

namespace lockstep::ops {

/// y[i]: `sample` elements each, of which the first `width` are the class token's.
template <class T>
struct ClassTokenFunctor {
  const T* x;
  const float* weight;
  T* y;
  Divisor sample;
  std::int64_t width;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t at = i % sample;
    if (at < width) {
      y[i] = weight[at];
    } else {
      y[i] = x[i - (i / sample + 1) * width];
    }
  }
};

/// Where an element of the input is in the output.
struct BehindClassToken {
  Divisor tokens;  ///< elements of a sample of the input
  std::int64_t width;
  LOCKSTEP_HOST_DEVICE std::int64_t of(std::int64_t i) const { return i + (i / tokens + 1) * width; }
};

template <class T>
struct ClassTokenGradientFunctor {
  const T* dy;
  float* dw;
  std::int64_t batch, sample;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const {
    float sum = 0;
    for (std::int64_t b = 0; b < batch; ++b) sum += dy[b * sample + i];
    dw[i] = sum;
  }
};

template <class Grid, class T>
class ClassTokenGrid final : public Kernel {
 public:
  ClassTokenGrid(std::int64_t batch, std::int64_t tokens, std::int64_t width)
      : batch_(batch), tokens_(tokens), width_(width) {}

  void forward(const ForwardCall& call) override {
    const auto* weight = static_cast<const float*>(call.parameters[0]);
    const std::int64_t sample = tokens_ + width_;
    Grid::each(stream_of(call), batch_ * sample,
               ClassTokenFunctor<T>{input<T>(call), weight, output<T>(call), Divisor(sample), width_});
  }

  void backward(const BackwardCall& call) override {
    const T* dy = output_gradient<T>(call);
    if (T* dx = input_gradient<T>(call); dx != nullptr) {
      Grid::each(stream_of(call), batch_ * tokens_,
                 GatherFunctor<BehindClassToken, T>{dy, dx, {Divisor(tokens_), width_}});
    }
    float* dw = call.parameter_gradients[0];
    if (dw != nullptr) {
      Grid::each(stream_of(call), width_, ClassTokenGradientFunctor<T>{dy, dw, batch_, tokens_ + width_});
    }
  }

 private:
  std::int64_t batch_, tokens_, width_;  ///< samples, elements of a sample's tokens, elements of a token
};

template <class Grid>
std::unique_ptr<Kernel> make_class_token_grid(const KernelRequest& request) {
  const Shape& x = request.inputs[0].shape;
  return make_for_elements(request, [&]<class T>(T /*element*/) {
    return std::make_unique<ClassTokenGrid<Grid, T>>(x[0], x[1] * x[2], x[2]);
  });
}

}  // namespace lockstep::ops
