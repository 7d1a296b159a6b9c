// gelu on a Grid. As on the CPU, training computes the slope in forward, and backward only multiplies by it.
#pragma once

#include "ops/elementwise_grid.hpp"
#include "ops/gelu/gelu_formulas.hpp"

namespace lockstep::ops {

template <class Phi>
struct GeluForward {
  static LOCKSTEP_HOST_DEVICE float of(float x) { return x * Phi::phi(x); }
};

template <class Phi, class T>
struct GeluTraining {
  const T* x;
  T* y;
  float* slope;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const {
    const float value = x[i], phi = Phi::phi(value);
    slope[i] = Phi::slope(value, phi);
    y[i] = value * phi;
  }
};

/// pre = sums, y = gelu(sums), tanh approximation; pre may be sums if the types are equal.
template <class T>
struct GeluOfSums {
  const float* sums;
  T *pre, *y;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const {
    const float value = sums[i];
    pre[i] = value;
    y[i] = GeluForward<GeluTanh>::of(value);
  }
};

/// gradient * gelu'(x), tanh approximation.
struct GeluGradient {
  static LOCKSTEP_HOST_DEVICE float of(float gradient, float x) {
    return gradient * GeluTanh::slope(x, GeluTanh::phi(x));
  }
};

template <class T>
struct GeluGradientFunctor {
  const float* gradient;
  const T* pre;
  T* dpre;  ///< may be `gradient` if the types are equal
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const { dpre[i] = GeluGradient::of(gradient[i], pre[i]); }
};

/// Converts a product's fp32 result of `n` elements to tensors of `dtype`.
template <class Grid>
void launch_gelu(GpuStream* stream, DType dtype, const float* sums, void* pre, void* y, std::int64_t n) {
  device::with_element(dtype, [&]<class T>(T /*element*/) {
    Grid::each(stream, n, GeluOfSums<T>{sums, static_cast<T*>(pre), static_cast<T*>(y)});
  });
}
/// dpre = gradient * gelu'(pre)
template <class Grid>
void launch_gelu_gradient(GpuStream* stream, DType dtype, const float* gradient, const void* pre, void* dpre,
                          std::int64_t n) {
  device::with_element(dtype, [&]<class T>(T /*element*/) {
    Grid::each(stream, n, GeluGradientFunctor<T>{gradient, static_cast<const T*>(pre), static_cast<T*>(dpre)});
  });
}

template <class Grid, class Phi, class T>
class GeluGrid final : public Kernel {
 public:
  GeluGrid(std::int64_t n, bool training) : n_(n), training_(training) {}

  void forward(const ForwardCall& call) override {
    if (training_) {
      Grid::each(stream_of(call), n_,
                 GeluTraining<Phi, T>{input<T>(call), output<T>(call), static_cast<float*>(call.saved[0])});
    } else {
      Grid::each(stream_of(call), n_, MapFunctor<GeluForward<Phi>, T>{input<T>(call), output<T>(call)});
    }
  }
  void backward(const BackwardCall& call) override {
    if (input_gradient(call) == nullptr) return;
    const auto* slope = static_cast<const float*>(call.saved[0]);
    Grid::each(stream_of(call), n_,
               MapPairFunctor<Product, T, float>{output_gradient<T>(call), slope, input_gradient<T>(call)});
  }

 private:
  std::int64_t n_;
  bool training_;
};

template <class Grid>
std::unique_ptr<Kernel> make_gelu_grid(const KernelRequest& request) {
  const std::int64_t n = request.outputs[0].elements();
  const bool training = request.mode == Mode::training;
  const bool exact = request.attributes->text("approximate") == "none";
  return make_for_elements(request, [&]<class T>(T /*element*/) -> std::unique_ptr<Kernel> {
    if (exact) return std::make_unique<GeluGrid<Grid, GeluExact, T>>(n, training);
    return std::make_unique<GeluGrid<Grid, GeluTanh, T>>(n, training);
  });
}

}  // namespace lockstep::ops
