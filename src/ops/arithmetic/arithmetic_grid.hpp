// add, sub, mul and scale on a Grid; add and mul process their inputs from left to right.
#pragma once

#include "ops/activations/activations_grid.hpp"
#include "ops/arithmetic/channel_factors.hpp"
#include "ops/arithmetic/scale.hpp"
#include "ops/elementwise_grid.hpp"

namespace lockstep::ops {

struct AddRelu {
  static LOCKSTEP_HOST_DEVICE float of(float left, float right) { return Relu::of(left + right); }
};

/// relu's backward, where dy is the sum of two terms, rounded as if it had been stored. dx may be any of them.
template <class T>
struct SumReluGradientFunctor {
  const T *y, *left, *right;
  T* dx;
  LOCKSTEP_HOST_DEVICE float value(std::int64_t i) const {
    T dy{};
    dy = left[i] + right[i];
    return Relu::gradient(y[i], dy);
  }
  LOCKSTEP_HOST_DEVICE void store(std::int64_t i, float value) const { dx[i] = value; }
};

template <class Grid, class T>
class AddGrid final : public Kernel {
 public:
  AddGrid(std::int64_t n, bool relu) : n_(n), relu_(relu) {}

  void forward(const ForwardCall& call) override {
    const T* sum = input<T>(call, 0);
    for (std::size_t i = 1; i < call.inputs.size(); ++i, sum = output<T>(call)) {
      if (relu_ && i + 1 == call.inputs.size()) {
        Grid::each(stream_of(call), n_, MapPairFunctor<AddRelu, T>{sum, input<T>(call, i), output<T>(call)});
      } else {
        Grid::each(stream_of(call), n_, device::AddFunctor<T>{sum, input<T>(call, i), output<T>(call)});
      }
    }
  }
  bool adds_output_gradients() const override { return relu_; }
  /// With relu, the gradient that all inputs share is computed once, in the first input's gradient.
  void backward(const BackwardCall& call) override {
    if (relu_) {
      const auto* y = static_cast<const T*>(call.outputs[0]);
      if (const auto* term = static_cast<const T*>(call.output_gradient_term); term != nullptr) {
        return Grid::each(stream_of(call), n_,
                          SumReluGradientFunctor<T>{y, output_gradient<T>(call), term, input_gradient<T>(call)});
      }
      return Grid::each(
          stream_of(call), n_,
          MapPairFunctor<ActivationGradientOf<Relu>, T>{y, output_gradient<T>(call), input_gradient<T>(call)});
    }
    for (std::size_t i = 0; i < call.input_gradients.size(); ++i) {
      T* dx = input_gradient<T>(call, i);
      if (dx != nullptr) Grid::each(stream_of(call), n_, device::CopyFunctor<T>{output_gradient<T>(call), dx});
    }
  }

 private:
  std::int64_t n_;
  bool relu_;
};

template <class Grid>
std::unique_ptr<Kernel> make_add_grid(const KernelRequest& request) {
  if (rounds_between(request)) return nullptr;
  return make_for_elements(request, [&]<class T>(T /*element*/) {
    return std::make_unique<AddGrid<Grid, T>>(request.outputs[0].elements(), request.epilogue == "relu");
  });
}

template <class Grid, class T>
class MulGrid final : public Kernel {
 public:
  explicit MulGrid(std::int64_t n) : n_(n) {}

  void forward(const ForwardCall& call) override {
    const T* product = input<T>(call, 0);
    for (std::size_t i = 1; i < call.inputs.size(); ++i, product = output<T>(call)) {
      Grid::each(stream_of(call), n_, MapPairFunctor<Product, T>{product, input<T>(call, i), output<T>(call)});
    }
  }
  /// The gradient of an input is dy times the other inputs, from left to right.
  void backward(const BackwardCall& call) override {
    for (std::size_t i = 0; i < call.inputs.size(); ++i) {
      T* dx = input_gradient<T>(call, i);
      if (dx != nullptr) gradient(call, i, dx);
    }
  }

 private:
  void gradient(const BackwardCall& call, std::size_t wanted, T* dx) const {
    const T* product = output_gradient<T>(call);
    for (std::size_t other = 0; other < call.inputs.size(); ++other) {
      if (other == wanted) continue;
      Grid::each(stream_of(call), n_, MapPairFunctor<Product, T>{product, input<T>(call, other), dx});
      product = dx;
    }
  }
  std::int64_t n_;
};

/// y = x * the factor of its channel; y may be x.
template <class T>
struct ChannelFactorsFunctor {
  const T *x, *factors;
  T* y;
  ChannelFactors sizes;
  LOCKSTEP_HOST_DEVICE float value(std::int64_t i) const { return x[i] * factors[sizes.of(i)]; }
  LOCKSTEP_HOST_DEVICE void store(std::int64_t i, float value) const { y[i] = value; }
};

/// A thread a factor, which visits the pixels in order.
template <class T>
struct FactorsGradientFunctor {
  const T *x, *dy;
  T* df;
  ChannelFactors sizes;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t sample = i / sizes.channels, first = sample * sizes.pixels * sizes.channels + i % sizes.channels;
    float sum = 0;
    for (std::int64_t p = 0; p < sizes.pixels; ++p) {
      const std::int64_t at = first + p * sizes.channels;
      sum += x[at] * dy[at];
    }
    df[i] = sum;
  }
};

template <class Grid, class T>
class ChannelFactorsGrid final : public Kernel {
 public:
  explicit ChannelFactorsGrid(const Shape& x) : sizes_(x) {}

  void forward(const ForwardCall& call) override {
    scale(stream_of(call), input<T>(call, 0), input<T>(call, 1), output<T>(call));
  }
  void backward(const BackwardCall& call) override {
    const T *x = input<T>(call, 0), *dy = output_gradient<T>(call);
    if (T* dx = input_gradient<T>(call, 0); dx != nullptr) scale(stream_of(call), dy, input<T>(call, 1), dx);
    if (T* df = input_gradient<T>(call, 1); df != nullptr) {
      Grid::each(stream_of(call), sizes_.batch * sizes_.channels, FactorsGradientFunctor<T>{x, dy, df, sizes_});
    }
  }

 private:
  void scale(GpuStream* stream, const T* x, const T* factors, T* y) const {
    Grid::each(stream, sizes_.batch * sizes_.pixels * sizes_.channels, ChannelFactorsFunctor<T>{x, factors, y, sizes_});
  }
  ChannelFactors sizes_;
};

template <class Grid>
std::unique_ptr<Kernel> make_mul_grid(const KernelRequest& request) {
  if (are_channel_factors(request.inputs)) {
    return make_for_elements(request, [&]<class T>(T /*element*/) {
      return std::make_unique<ChannelFactorsGrid<Grid, T>>(request.inputs[0].shape);
    });
  }
  if (rounds_between(request)) return nullptr;
  return make_for_elements(request, [&]<class T>(T /*element*/) {
    return std::make_unique<MulGrid<Grid, T>>(request.outputs[0].elements());
  });
}

template <class T>
struct ScaleFunctor {
  const T* x;
  T* y;
  float factor, shift;
  /// A shift of 0 would make 0 of -0.
  LOCKSTEP_HOST_DEVICE float value(std::int64_t i) const {
    const float product = factor * x[i];
    return shift == 0 ? product : product + shift;
  }
  LOCKSTEP_HOST_DEVICE void store(std::int64_t i, float value) const { y[i] = value; }
};

template <class Grid, class T>
class ScaleGrid final : public Kernel {
 public:
  ScaleGrid(const Attributes& attributes, std::int64_t n)
      : factor_(attributes.number("factor")), shift_(shift_of(attributes)), n_(n) {}

  void forward(const ForwardCall& call) override {
    Grid::each(stream_of(call), n_, ScaleFunctor<T>{input<T>(call), output<T>(call), factor_, shift_});
  }
  void backward(const BackwardCall& call) override {
    T* dx = input_gradient<T>(call);
    if (dx != nullptr) Grid::each(stream_of(call), n_, ScaleFunctor<T>{output_gradient<T>(call), dx, factor_, 0});
  }

 private:
  float factor_, shift_;
  std::int64_t n_;
};

struct Difference {
  static LOCKSTEP_HOST_DEVICE float of(float a, float b) { return a - b; }
};

template <class Grid, class T>
class SubGrid final : public Kernel {
 public:
  explicit SubGrid(std::int64_t n) : n_(n) {}

  void forward(const ForwardCall& call) override {
    Grid::each(stream_of(call), n_,
               MapPairFunctor<Difference, T>{input<T>(call, 0), input<T>(call, 1), output<T>(call)});
  }
  void backward(const BackwardCall& call) override {
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
      T* dx = input_gradient<T>(call, side);
      const float sign = side == 0 ? 1 : -1;
      if (dx != nullptr) Grid::each(stream_of(call), n_, ScaleFunctor<T>{output_gradient<T>(call), dx, sign, 0});
    }
  }

 private:
  std::int64_t n_;
};

template <class Grid>
std::unique_ptr<Kernel> make_sub_grid(const KernelRequest& request) {
  return make_for_elements(request, [&]<class T>(T /*element*/) {
    return std::make_unique<SubGrid<Grid, T>>(request.outputs[0].elements());
  });
}

template <class Grid>
std::unique_ptr<Kernel> make_scale_grid(const KernelRequest& request) {
  return make_for_elements(request, [&]<class T>(T /*element*/) {
    return std::make_unique<ScaleGrid<Grid, T>>(*request.attributes, request.outputs[0].elements());
  });
}

}  // namespace lockstep::ops
